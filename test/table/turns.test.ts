import { expect, test } from '@jest/globals';
import { changesInTurn, Turns } from '../../lib/table/turns.ts';

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

test('the time in line is no part of an attempt, by whose duration the next one waits', async () => {
  const turns = new Turns();
  const { signal } = new AbortController();
  const clock = { nowMs: 0 };
  const tookMs: number[] = [];
  const wait = async (_: number, took: number) => void tookMs.push(took);
  const { update, retries } = changesInTurn({ turns, signal, nowMs: () => clock.nowMs, wait });
  const other = notedWork([], 'other');
  void turns.take('key', signal, other.work);
  const change = update.inTurn('key', async () => {
    clock.nowMs += 10;
    await update.wait(0);
    clock.nowMs += 20;
    await update.wait(1);
  });
  clock.nowMs = 5_000;
  other.resolve('done');
  await change;
  expect(tookMs).toEqual([10, 20]);
  expect(retries()).toBe(2);
});

function fail(): never {
  throw new Error('expected work');
}
