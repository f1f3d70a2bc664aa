import type { TestAPI } from 'vitest';

/** A case while its test runs. */
export interface Case {
  /** The scenario's question, if it has the case. */
  readonly question: string | undefined;
  /** What the agent answers; the test sets it. */
  answer: string | undefined;
  /** Ids of the sources that the answer cites. */
  sources: string[];
}

/** Adds the fixture `ragcheckCase` to a `test` of Vitest. */
export function withCases<T extends object>(test: TestAPI<T>): TestAPI<T & { ragcheckCase: Case }>;
