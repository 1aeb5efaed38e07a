import { expect, test } from '@jest/globals';
import { concurrently } from '../../lib/dispatch/concurrently.ts';

test('one item that takes its time does not keep the others waiting', async () => {
  const slow = Promise.withResolvers<void>();
  const done: number[] = [];
  const all = concurrently([0, 1, 2, 3, 4], 2, async (item) => {
    if (item === 0) await slow.promise;
    done.push(item);
    if (item === 4) slow.resolve();
  });
  await all;
  expect(done).toEqual([1, 2, 3, 4, 0]);
});

test('what was begun is finished before a failure to go on is told', async () => {
  const done: string[] = [];
  async function* pages() {
    yield 'a';
    await Promise.reject(new Error('the second page is missing'));
  }
  const work = async (item: string) => {
    await new Promise(setImmediate);
    done.push(item);
  };
  await expect(concurrently(pages(), 4, work)).rejects.toThrow('the second page is missing');
  expect(done).toEqual(['a']);
});
