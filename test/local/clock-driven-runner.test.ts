import { describe, expect, test } from '@jest/globals';
import { type Job, nextTickMs, type RunnerClock, runOnSchedules } from '../../local/clock-driven-runner.ts';

/** A clock that jumps to the earliest sleeper whenever every job sleeps, and aborts at `endMs`. */
function jumpingClock(endMs: number, sleepers: number) {
  const ended = new AbortController();
  let nowMs = 0;
  let waiting: { untilMs: number; wake: () => void }[] = [];
  const jump = () => {
    if (waiting.length < sleepers) return;
    nowMs = Math.min(...waiting.map(({ untilMs }) => untilMs));
    if (nowMs >= endMs) ended.abort();
    const due = waiting.filter(({ untilMs }) => ended.signal.aborted || untilMs <= nowMs);
    waiting = waiting.filter((sleeper) => !due.includes(sleeper));
    for (const { wake } of due) wake();
  };
  const clock: RunnerClock = {
    nowMs: () => nowMs,
    sleepUntil: (untilMs) =>
      new Promise((wake) => {
        waiting.push({ untilMs, wake });
        jump();
      }),
  };
  return { clock, signal: ended.signal };
}

describe('the clock-driven runner', () => {
  test('invokes every job once in the order given, then each at its own multiples', async () => {
    const { clock, signal } = jumpingClock(40_000, 2);
    const calls: string[] = [];
    const job = (id: string, everyMs: number): Job => ({
      id,
      everyMs,
      invoke: async (tickMs) => void calls.push(`${id}@${tickMs / 1000}`),
    });

    await runOnSchedules([job('slow', 20_000), job('fast', 10_000)], clock, signal);

    expect(calls).toEqual(['slow@0', 'fast@0', 'fast@10', 'slow@20', 'fast@20', 'fast@30']);
  });

  test('leaves out the ticks that pass while a job runs', () => {
    expect([0, 1, 9_999, 10_000, 25_000].map((nowMs) => nextTickMs(10_000, nowMs))).toEqual([
      10_000, 10_000, 10_000, 20_000, 30_000,
    ]);
  });

  test('stops before the next first invocation when it is told to end', async () => {
    const ended = new AbortController();
    const calls: string[] = [];
    const clock: RunnerClock = { nowMs: () => 0, sleepUntil: async () => undefined };
    const ending: Job = { id: 'a', everyMs: 1, invoke: async () => void ended.abort(calls.push('a')) };

    await runOnSchedules(
      [ending, { ...ending, id: 'b', invoke: async () => void calls.push('b') }],
      clock,
      ended.signal,
    );

    expect(calls).toEqual(['a']);
  });

  test('ends with the error of a job that throws', async () => {
    const clock: RunnerClock = { nowMs: () => 0, sleepUntil: async () => undefined };
    const broken: Job = { id: 'a', everyMs: 1, invoke: () => Promise.reject(new Error('broken')) };

    await expect(runOnSchedules([broken], clock, new AbortController().signal)).rejects.toThrow('broken');
  });
});
