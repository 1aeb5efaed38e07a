/** One handler and its schedule. */
export interface Job {
  readonly id: string;
  readonly everyMs: number;
  /** `tickMs` is the due time. A job reports its own failures; a throw ends the runner. */
  readonly invoke: (tickMs: number) => Promise<void>;
}

export interface RunnerClock {
  readonly nowMs: () => number;
  /** Resolves at `untilMs`, or at once when the signal aborts. */
  readonly sleepUntil: (untilMs: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Invokes every job once, in the order given, and from then on each on its own schedule until the signal aborts. A job
 * never overlaps itself: ticks that pass while it runs are left out. Resolves when the last invocation has ended.
 * @param beside begins once every job has been invoked, and ends with the signal
 */
export async function runOnSchedules(
  jobs: readonly Job[],
  clock: RunnerClock,
  signal: AbortSignal,
  beside: () => Promise<void> = async () => undefined,
): Promise<void> {
  for (const job of jobs) {
    if (signal.aborted) return;
    await job.invoke(clock.nowMs());
  }
  await Promise.all([...jobs.map((job) => keepInvoking(job, clock, signal)), beside()]);
}

async function keepInvoking(job: Job, clock: RunnerClock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const dueMs = nextTickMs(job.everyMs, clock.nowMs());
    await clock.sleepUntil(dueMs, signal);
    if (!signal.aborted) await job.invoke(dueMs);
  }
}

/** The first multiple of the period after `nowMs`, as EventBridge's rates are aligned once they run. */
export function nextTickMs(everyMs: number, nowMs: number): number {
  return (Math.floor(nowMs / everyMs) + 1) * everyMs;
}
