import { expect } from 'vitest';
import { test } from './case.mjs';
import { answer } from './desk.mjs';

test('on its way', async ({ one }) => {
  one.answer = await answer('Where is my order A-1042?');
  expect(one.answer).toContain('24 November');
});

test('lost', async ({ one }) => {
  one.answer = await answer('My parcel A-1077 was promised for last week. Where is it?');
  expect(one.answer).toContain('lost');
});

test('no such order', async ({ one }) => {
  one.answer = await answer('Where is my order B-7?');
  expect(one.answer).toContain('B-7');
});
