import { expect } from 'vitest';
import { test } from './case.mjs';
import { answer } from './desk.mjs';

test('on its way', async ({ ragcheckCase }) => {
  ragcheckCase.answer = await answer('Where is my order A-1042?');
  expect(ragcheckCase.answer).toContain('24 November');
});

test('lost', async ({ ragcheckCase }) => {
  ragcheckCase.answer = await answer('My parcel A-1077 was promised for last week. Where is it?');
  expect(ragcheckCase.answer).toContain('lost');
});

test('no such order', async ({ ragcheckCase }) => {
  ragcheckCase.answer = await answer('Where is my order B-7?');
  expect(ragcheckCase.answer).toContain('B-7');
});
