import { expect, test } from '@jest/globals';
import { eachOf } from '../../lib/util/async.ts';
import { boundedText } from '../../lib/util/values.ts';

const nested = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000));
test.each([
  { name: 'a short text unchanged', value: 'not found', text: 'not found' },
  { name: 'lines joined to one', value: ' first\r\n\tsecond\u2028third ', text: 'first second third' },
  { name: 'the start of a long text, and an ellipsis', value: 'x'.repeat(400_000), text: `${'x'.repeat(300)}…` },
  { name: 'no half of a surrogate pair', value: `${'x'.repeat(299)}\u{1f600}`, text: `${'x'.repeat(299)}\ufffd…` },
  { name: 'a number as text', value: 7, text: '7' },
  { name: 'the text "undefined" for an absent value', value: undefined, text: 'undefined' },
  { name: '"an object" for nested lists, without reading them', value: nested, text: 'an object' },
])('boundedText returns $name', ({ value, text }) => {
  expect(boundedText(value)).toBe(text);
});

test('eachOf processes the other elements while a slow element is processed', async () => {
  const slow = Promise.withResolvers<void>();
  const done: number[] = [];
  const all = eachOf([0, 1, 2, 3, 4], 2, async (item) => {
    if (item === 0) await slow.promise;
    done.push(item);
    if (item === 4) slow.resolve();
  });
  await all;
  expect(done).toEqual([1, 2, 3, 4, 0]);
});

test('eachOf returns results in the order of the elements, and begins no further element after a failure', async () => {
  await expect(eachOf([3, 1, 2], 2, async (item) => item * 2)).resolves.toEqual([6, 2, 4]);
  const begun: number[] = [];
  const failing = eachOf([0, 1, 2, 3], 1, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error('the second one fails');
  });
  await expect(failing).rejects.toThrow('the second one fails');
  expect(begun).toEqual([0, 1]);
});
