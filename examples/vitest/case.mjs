// In a project of yours, after `npm install --save-dev ragcheck-harness`, this is 'ragcheck-harness/vitest'.
import { withCases } from '../../packaging/npm/vitest.mjs';
import { test as plain } from 'vitest';

export const test = withCases(plain);
