import { expect, test } from '@jest/globals';
import { changesInTurn, Turns } from '../../lib/table/turns.ts';

/** Returns work that records its beginning in `begun`, and the functions that end it. */
function notedWork(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = () => {
    begun.push(name);
    return promise;
  };
  return { work, resolve, reject };
}

test('work with the same key runs in order, each after the previous work has ended or failed', async () => {
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

test('the next work begins if the signal of work that does not end is aborted', async () => {
  const turns = new Turns();
  const stuck = new AbortController();
  void turns.take('key', stuck.signal, () => new Promise(() => {}));
  const next = turns.take('key', new AbortController().signal, async () => 'done');
  stuck.abort();
  expect(await next).toBe('done');
});

test('the time in the queue does not count for the duration of an attempt, which determines the next wait', async () => {
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
