import type { RunnerClock } from '../../local/clock-driven-runner.ts';

/**
 * Returns a clock that jumps to the earliest sleeper whenever all of them sleep, and aborts at `endMs`. While fewer than
 * `sleepers` sleep, work is still running.
 */
export function jumpingClock(
  endMs: number,
  sleepers: number,
  startMs = 0,
): { readonly clock: RunnerClock; readonly signal: AbortSignal } {
  const ended = new AbortController();
  let nowMs = startMs;
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
