import { expect, test } from '@jest/globals';
import { sharedRead } from '../../../cli/page/shared-read.ts';

function aRead(answers: readonly (string | Error)[]) {
  const left = [...answers];
  const clock = { nowMs: 1_000 };
  const read = async () => {
    const answer = left.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return {
    clock,
    get: sharedRead(read, { freshMs: 1_000, nowMs: () => clock.nowMs, ended: new AbortController().signal }),
  };
}

test('a result is read again after its time', async () => {
  const { get, clock } = aRead(['first', 'second']);
  await get();

  clock.nowMs = 1_999;
  expect(await get()).toBe('first');
  clock.nowMs = 2_000;
  expect(await get()).toBe('second');
});

test('an error is kept as long as a result', async () => {
  const { get, clock } = aRead([new Error('no answer'), 'first']);

  await expect(get()).rejects.toThrow('no answer');
  await expect(get()).rejects.toThrow('no answer');
  clock.nowMs = 2_000;
  expect(await get()).toBe('first');
});
