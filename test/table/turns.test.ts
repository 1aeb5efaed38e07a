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
  const { signal } = new AbortController();
  const results = [first, second, third].map((each) => turns.take('key', signal, each?.work ?? fail));
  const settled = Promise.allSettled(results);
  await turns.take('other key', signal, async () => begun.push('other'));
  expect(begun).toEqual(['first', 'other']);
  first?.reject(new Error('lost'));
  await expect(results[0]).rejects.toThrow('lost');
  second?.resolve('done');
  expect(await results[1]).toBe('done');
  third?.resolve('done, too');
  await settled;
  expect(begun).toEqual(['first', 'other', 'second', 'third']);
});

test('work that does not end gives its turn to the next when its signal aborts', async () => {
  const turns = new Turns();
  const stuck = new AbortController();
  void turns.take('key', stuck.signal, () => new Promise(() => {}));
  const next = turns.take('key', new AbortController().signal, async () => 'done');
  stuck.abort();
  expect(await next).toBe('done');
});

function fail(): never {
  throw new Error('expected work');
}
