import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { loopHandler, type Summary } from '../lib/dispatch/dispatch.ts';
import { nextTickMs } from '../lib/dispatch/due.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../lib/loops/pass.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';
import { PASS_BUDGET_MS } from '../lib/runtime/deadline.ts';
import type { Environment } from '../lib/runtime/environment.ts';
import type { Handler } from '../lib/runtime/invocation.ts';
import { type ClusterSpec, type Loop, SCHEDULE_SECONDS } from '../lib/spec/cluster-spec.ts';
import { readCluster } from '../lib/table/clusters.ts';
import { StartError } from './local-cluster.ts';

export interface ScheduledHandler {
  readonly id: string;
  readonly everyMs: number;
  /** Runs the job that was due at `tickMs`. The job reports its failures itself. An error that the job throws ends all jobs. */
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
 * Invokes every job once, in the given order, and then each job on its own schedule until the signal aborts. A job skips the
 * ticks that come while it still runs. Resolves when the last invocation has ended.
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
  for (const each of all) each.catch(() => failed.abort());
  await Promise.allSettled(all);
  await Promise.all(all);
}

async function keepInvoking(job: ScheduledHandler, clock: RunnerClock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const dueMs = nextTickMs(job.everyMs, clock.nowMs());
    await clock.sleepUntil(dueMs, signal);
    if (!signal.aborted) await job.invoke(dueMs);
  }
}

/** The loops in the order of their first invocations: namespaces before their objects, ranges before allocations. */
export const LOOP_DEFINITIONS: Readonly<Record<Loop, LoopDefinition>> = {
  'system-namespaces': systemNamespaces,
  'cluster-ip-repair': clusterIpRepair,
  'node-port-repair': nodePortRepair,
  'kubernetes-service': kubernetesService,
};

export const LOOP_HANDLERS = Object.fromEntries(
  Object.entries(LOOP_DEFINITIONS).map(([id, loop]) => [id, loopHandler(loop)]),
) as Readonly<Record<Loop, Handler<Summary>>>;

/** The time that an invocation has in addition to the budget of its pass, so that the pass can use the whole budget. */
const BESIDE_PASS_MS = 50_000;
const READ_MS = 60_000;

/** Returns a job for each loop. A job throws a StartError once the cluster is no longer registered. */
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
      if (!(await isDeleted(environment, name))) return;
      const message = `${name} is no longer registered: its loops have ended. Start again to register it again.`;
      throw new StartError(3, message);
    },
  }));
}

/** Invokes a loop. Never throws, because the handler logs the failure, and the next tick tries again. */
export async function invokeLoop(environment: Environment, loop: Loop, event: object): Promise<void> {
  const { nowMs } = environment;
  const endMs = nowMs() + PASS_BUDGET_MS[loop] + BESIDE_PASS_MS;
  const context = { environment, awsRequestId: randomUUID(), getRemainingTimeInMillis: () => endMs - nowMs() };
  await LOOP_HANDLERS[loop](event, context).catch(() => undefined);
}

export function scheduledEvent(tickMs: number): object {
  return { 'detail-type': 'Scheduled Event', time: `${new Date(tickMs).toISOString().slice(0, 19)}Z` };
}

function isDeleted({ table }: Environment, cluster: string): Promise<boolean> {
  const read = readCluster(table(AbortSignal.timeout(READ_MS)), cluster);
  // A table that cannot be read is not reported here, because the passes report it.
  return read.then((found) => found === undefined).catch(() => false);
}
