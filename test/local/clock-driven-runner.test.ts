import { describe, expect, test } from '@jest/globals';
import { type Job, nextTickMs, type RunnerClock, runOnSchedules } from '../../local/clock-driven-runner.ts';
import { jumpingClock } from './jumping-clock.ts';

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

  test('begins what runs beside the jobs once each of them has been invoked', async () => {
    const { clock, signal } = jumpingClock(20_000, 2);
    const calls: string[] = [];
    const job = (id: string): Job => ({ id, everyMs: 10_000, invoke: async () => void calls.push(id) });

    await runOnSchedules([job('a'), job('b')], clock, signal, async () => void calls.push('beside'));

    expect(calls).toEqual(['a', 'b', 'beside', 'a', 'b']);
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
