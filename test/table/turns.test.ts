import { expect, test } from '@jest/globals';
import { Turns } from '../../lib/table/turns.ts';

/** Returns work that notes when it begins, and its end. */
function notedWork(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = () => {
    begun.push(name);
    return promise;
  };
  return { work, resolve, reject };
}

test('work with one key begins in the order in which it came, each after the one before has ended or failed', async () => {
  const begun: string[] = [];
  const turns = new Turns();
  const [first, second, third] = ['first', 'second', 'third'].map((name) => notedWork(begun, name));
  const results = [first, second, third].map((each) => turns.take('key', each?.work ?? fail));
  const settled = Promise.allSettled(results);
  await turns.take('other key', async () => begun.push('other'));
  expect(begun).toEqual(['first', 'other']);
  first?.reject(new Error('lost'));
  await expect(results[0]).rejects.toThrow('lost');
  second?.resolve('done');
  expect(await results[1]).toBe('done');
  third?.resolve('done, too');
  await settled;
  expect(begun).toEqual(['first', 'other', 'second', 'third']);
});

function fail(): never {
  throw new Error('expected work');
}
