import { expect, test } from '@jest/globals';
import { eachOf } from '../../lib/cluster/async.ts';

test('eachOf does not delay elements because of a slow one', async () => {
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

test('eachOf returns results in the order of the elements, and ends at the first failure', async () => {
  await expect(eachOf([3, 1, 2], 2, async (item) => item * 2)).resolves.toEqual([6, 2, 4]);
  const begun: number[] = [];
  const failing = eachOf([0, 1, 2, 3], 1, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error('the second one fails');
  });
  await expect(failing).rejects.toThrow('the second one fails');
  expect(begun).toEqual([0, 1]);
});
