import type { RunnerClock } from '../../local/clock-driven-runner.ts';
import { Clock } from '../simulation/clock.ts';

/** Returns a clock for runners, which starts at 0. Its signal aborts at `endMs`, and `run` lets the time pass until then. */
export function runnerClock(endMs: number) {
  const simulated = new Clock(0, 20);
  const ended = new AbortController();
  const clock: RunnerClock = {
    nowMs: () => simulated.nowMs,
    sleepUntil: (untilMs) => simulated.wait(Math.min(untilMs, endMs) - simulated.nowMs),
  };
  simulated.at(endMs, () => ended.abort(), -1);
  return { clock, signal: ended.signal, run: () => simulated.run(() => false) };
}
