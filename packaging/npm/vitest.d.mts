import type { TestAPI } from 'vitest';

/** A case while its test runs. */
export interface Case {
  /** The scenario's question, if it has the case. */
  readonly question: string | undefined;
  /** What the agent answers; the test sets it. */
  answer: string | undefined;
  /** Ids of the sources that the answer cites. */
  sources: string[];
  /** Base URLs of this case by variable, for clients of concurrent tests; empty without `ragcheck exec`. */
  readonly baseUrls: Record<string, string>;
  /** Headers by which a client that was made earlier names this case. */
  readonly headers: Record<string, string>;
}

export interface Options {
  /** Whether `process.env` has the base URLs of a case while its test runs; `false` for concurrent tests. By default `true`. */
  environment?: boolean;
}

/** Adds the fixture `ragcheckCase` to a `test` of Vitest. */
export function withCases<T extends object>(test: TestAPI<T>, options?: Options): TestAPI<T & { ragcheckCase: Case }>;
