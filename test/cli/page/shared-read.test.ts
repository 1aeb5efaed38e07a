import { expect, test } from '@jest/globals';
import { SharedRead } from '../../../cli/page/shared-read.ts';

function aRead(answers: readonly (string | Error)[]) {
  const left = [...answers];
  const clock = { nowMs: 1_000 };
  let reads = 0;
  const shared = new SharedRead(
    async () => {
      reads++;
      const answer = left.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    { freshMs: 1_000, nowMs: () => clock.nowMs },
  );
  return { shared, clock, reads: () => reads };
}

test('a result is read again after its time', async () => {
  const { shared, clock, reads } = aRead(['first', 'second']);
  await shared.get();

  clock.nowMs = 1_999;
  expect(await shared.get()).toEqual({ value: { of: 'first', atMs: 1_000 } });
  clock.nowMs = 2_000;
  expect(await shared.get()).toEqual({ value: { of: 'second', atMs: 2_000 } });
  expect(reads()).toBe(2);
});

test('a failing read keeps the last result, with the error and its start', async () => {
  const { shared, clock } = aRead(['first', new Error('no answer'), new Error('still none'), 'last']);
  const seen = [];
  for (const nowMs of [1_000, 2_000, 3_000, 4_000]) {
    clock.nowMs = nowMs;
    seen.push(await shared.get());
  }

  const value = { of: 'first', atMs: 1_000 };
  expect(seen).toEqual([
    { value },
    { value, trouble: { message: 'no answer', sinceMs: 2_000 } },
    { value, trouble: { message: 'still none', sinceMs: 2_000 } },
    { value: { of: 'last', atMs: 4_000 } },
  ]);
});

test('a failed read is not repeated at once', async () => {
  const { shared, reads } = aRead([new Error('no answer'), 'first']);

  await shared.get();

  expect(await shared.get()).toEqual({ trouble: { message: 'no answer', sinceMs: 1_000 } });
  expect(reads()).toBe(1);
});
