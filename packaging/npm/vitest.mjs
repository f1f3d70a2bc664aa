// Makes tests of Vitest cases of `ragcheck exec`:
//
//   import { test as plain } from 'vitest';
//   import { withCases } from 'ragcheck-harness/vitest';
//   const test = withCases(plain);
//
// A test that takes the fixture `ragcheckCase` is a case below `ragcheck exec`; alone, it runs as it did.
//
// The case's base URLs are in `process.env` while the test runs. Concurrent tests of one worker share that environment:
// with `withCases(plain, { environment: false })` it stays as it is, and clients are made from `ragcheckCase.baseUrls`.

async function post(path, body) {
  const reply = await fetch(process.env.RAGCHECK_URL + path, { method: 'POST', body: JSON.stringify(body) });
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.error);
  return said;
}

/** The test of this worker whose base URLs are in the environment. */
let holder;

/** Puts the base URLs of a test into the environment, which one test at a time can have. */
function hold(name, urls) {
  if (holder !== undefined) {
    throw new Error(
      `${name} began while ${holder} ran in the same worker, and both would read their base URLs from process.env: run them ` +
        'one after the other, or write `withCases(test, { environment: false })` and make clients from `ragcheckCase.baseUrls`',
    );
  }
  holder = name;
  Object.assign(process.env, urls);
}

export function withCases(test, { environment = true } = {}) {
  return test.extend({
    ragcheckCase: async ({ task }, use) => {
      const one = { question: undefined, answer: undefined, sources: [], baseUrls: {}, headers: {} };
      if (!process.env.RAGCHECK_URL) {
        await use(one);
        return;
      }
      // In a second worker of Vitest, others may run tests at the same time.
      const sideBySide = Number(process.env.VITEST_POOL_ID) > 1;
      const begun = await post('/cases', { name: task.name, side_by_side: sideBySide });
      const end = (how) => post(`/cases/${begun.id}/end`, how);
      one.question = begun.question;
      [one.baseUrls, one.headers] = [begun.base_urls, begun.headers];
      if (environment) {
        try {
          hold(task.name, begun.base_urls);
        } catch (error) {
          await end({ error: error.message });
          throw error;
        }
      }
      try {
        await use(one);
      } finally {
        if (environment) holder = undefined;
      }
      const { answer, sources } = one;
      if (task.pending || task.result?.pending || task.mode === 'skip') {
        await end({ skipped: task.result?.note ?? 'skipped' });
        return;
      }
      const raised = task.result?.errors?.[0];
      const why = raised ? `${raised.name}: ${raised.message}` : 'the test set no answer';
      const { error } = await end(answer === undefined ? { error: why } : { answer, sources });
      if (error) throw new Error(error);
    },
  });
}
