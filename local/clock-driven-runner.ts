import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { nextTickMs } from '../lib/dispatch/due.ts';
import type { Environment } from '../lib/runtime/environment.ts';
import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../lib/spec/cluster-spec.ts';
import { readCluster } from '../lib/table/clusters.ts';
import { LOOP_HANDLERS } from './loop-handlers.ts';
import { StartError } from './start-options.ts';

export interface ScheduledHandler {
  readonly id: string;
  readonly everyMs: number;
  /** Runs the job that was due at `tickMs`. It reports its own failures. An error that it throws ends all jobs. */
  readonly invoke: (tickMs: number) => Promise<void>;
}

export interface RunnerClock {
  readonly nowMs: () => number;
  /** Resolves at `untilMs`, or at once when the signal aborts. */
  readonly sleepUntil: (untilMs: number, signal: AbortSignal) => Promise<void>;
}

export function runnerClock(nowMs: () => number): RunnerClock {
  return {
    nowMs,
    sleepUntil: (untilMs, signal) =>
      sleep(Math.max(0, untilMs - nowMs()), undefined, { signal }).catch(() => undefined),
  };
}

/**
 * Invokes every job once, in the given order, and then invokes each job on its own schedule until the signal aborts. A
 * job skips the ticks that come while it still runs. Resolves when the last invocation has ended.
 * @param beside additional work, which begins once every job has been invoked, and ends when its signal aborts
 */
export async function runOnSchedules(
  jobs: readonly ScheduledHandler[],
  clock: RunnerClock,
  signal: AbortSignal,
  beside: (signal: AbortSignal) => Promise<void> = async () => undefined,
): Promise<void> {
  for (const job of jobs) {
    if (signal.aborted) return;
    await job.invoke(clock.nowMs());
  }
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const all = [...jobs.map((job) => keepInvoking(job, clock, either)), beside(either)];
  const ends = all.map((each) =>
    each.catch((error: unknown) => {
      failed.abort();
      throw error;
    }),
  );
  const results = await Promise.allSettled(ends);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function keepInvoking(job: ScheduledHandler, clock: RunnerClock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const dueMs = nextTickMs(job.everyMs, clock.nowMs());
    await clock.sleepUntil(dueMs, signal);
    if (!signal.aborted) await job.invoke(dueMs);
  }
}

/** The time limit of an invocation. A repair has the same limit as its function, so that a pass can use its whole budget. */
const INVOCATION_MS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60_000,
  'kubernetes-service': 60_000,
  'cluster-ip-repair': 170_000,
  'node-port-repair': 170_000,
};
const READ_MS = 60_000;

/**
 * Returns a handler for each loop. A handler runs at the interval in the spec or on the loop's schedule, whichever is
 * shorter. A handler throws a StartError once the cluster is no longer registered.
 */
export function scheduledLoops(
  environment: Environment,
  { name, intervalSeconds }: Pick<ClusterSpec, 'name' | 'intervalSeconds'>,
): ScheduledHandler[] {
  const begun = new Set<Loop>();
  return (Object.keys(LOOP_HANDLERS) as Loop[]).map((id) => ({
    id,
    everyMs: Math.min(SCHEDULE_SECONDS[id], intervalSeconds[id]) * 1000,
    invoke: async (tickMs) => {
      // The first pass is forced: the user who starts the loops wants to see one even if another has just ended.
      const event = begun.has(id) ? scheduledEvent(tickMs) : { force: true };
      begun.add(id);
      await invokeLoop(environment, id, event);
      if (await isDeleted(environment, name)) {
        const message = `${name} is no longer registered: its loops have ended. Start again to register it again.`;
        throw new StartError(3, message);
      }
    },
  }));
}

/** Invokes a loop. Never throws, because the handler logs its failure, and the next tick tries again. */
export async function invokeLoop(environment: Environment, loop: Loop, event: object): Promise<void> {
  const { nowMs } = environment;
  const endMs = nowMs() + INVOCATION_MS[loop];
  const context = { environment, awsRequestId: randomUUID(), getRemainingTimeInMillis: () => endMs - nowMs() };
  await LOOP_HANDLERS[loop](event, context).catch(() => undefined);
}

export function scheduledEvent(tickMs: number): object {
  return { 'detail-type': 'Scheduled Event', time: `${new Date(tickMs).toISOString().slice(0, 19)}Z` };
}

async function isDeleted({ table }: Environment, cluster: string): Promise<boolean> {
  try {
    return (await readCluster(table(AbortSignal.timeout(READ_MS)), cluster)) === undefined;
  } catch {
    // A table that cannot be read is not reported here, because the passes report it.
    return false;
  }
}
