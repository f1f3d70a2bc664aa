// Makes tests of Vitest cases of `ragcheck exec`:
//
//   import { test as plain } from 'vitest';
//   import { withCases } from 'ragcheck-harness/vitest';
//   const test = withCases(plain);
//
// A test that takes the fixture `ragcheckCase` is a case below `ragcheck exec`; alone, it runs as it did.

async function post(path, body) {
  const reply = await fetch(process.env.RAGCHECK_URL + path, { method: 'POST', body: JSON.stringify(body) });
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.error);
  return said;
}

export function withCases(test) {
  return test.extend({
    ragcheckCase: async ({ task }, use) => {
      const one = { question: undefined, answer: undefined, sources: [], baseUrls: {}, headers: {} };
      if (!process.env.RAGCHECK_URL) {
        await use(one);
        return;
      }
      const begun = await post('/cases', { name: task.name });
      one.question = begun.question;
      [one.baseUrls, one.headers] = [begun.base_urls, begun.headers];
      Object.assign(process.env, begun.base_urls);
      await use(one);
      const { answer, sources } = one;
      if (task.pending || task.result?.pending || task.mode === 'skip') {
        await post(`/cases/${begun.id}/end`, { skipped: task.result?.note ?? 'skipped' });
        return;
      }
      const raised = task.result?.errors?.[0];
      const why = raised ? `${raised.name}: ${raised.message}` : 'the test set no answer';
      const ended = answer === undefined ? { error: why } : { answer, sources };
      const { error } = await post(`/cases/${begun.id}/end`, ended);
      if (error) throw new Error(error);
    },
  });
}
