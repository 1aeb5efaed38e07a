import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod/mini';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { createEnvironment } from '../../lib/runtime/cluster-connections.ts';
import { QUEUEING_MS, withinDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import { listClusters } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { decodeItem } from '../../lib/table/stored-item.ts';
import { powertoolsTelemetry } from '../../lib/telemetry/powertools.ts';
import { errorSentence } from '../../lib/telemetry/telemetry.ts';
import {
  invokeLoop,
  type RunnerClock,
  runnerClock,
  runOnSchedules,
  scheduledEvent,
} from '../../local/clock-driven-runner.ts';
import { endingWith, givenUpAfter, targetGroups } from '../../local/local-environment.ts';
import type { ListenAddress } from '../listen.ts';
import type { OpenTable, TableOptions } from '../open-table.ts';
import { statusOfList } from '../status/read-status.ts';
import { type RunMonitor, runMonitor, serveMonitor } from './run-monitor.ts';

/** The stack name that is recorded as the owner of a cluster if `kbctl run` runs the loops of this cluster. */
const RUN_STACK = 'kbctl-run';

/** The number of simultaneous passes of a loop: high, so that clusters that do not answer do not delay others. */
const CLUSTERS_AT_ONCE = 64;

/** Runs the loops of all clusters until `ended` aborts; running passes get 5 s more. Serves metrics at `listen`. */
export async function serveTable(
  opened: OpenTable,
  { region, profile }: TableOptions,
  listen: ListenAddress | undefined,
  ended: AbortSignal,
): Promise<void> {
  const { tableUntil, clock } = opened;
  const monitor = runMonitor(powertoolsTelemetry, clock.nowMs, () => performance.now());
  const server = listen && (await serveMonitor(monitor, listen, clock.nowMs));
  const reading = listen && keepReading(opened, monitor, ended);
  const sources = kubeconfigSources({ region, profile });
  const { environment, close } = createEnvironment({
    nowMs: clock.nowMs,
    clock,
    // In a pod, as in a Lambda function, a kubeconfig must not lead to an address of the host.
    loadKubeconfig: kubeconfigLoader('.', sources, { refuseLocal: 'KUBERNETES_SERVICE_HOST' in process.env }),
    startDeadline: endingWith(givenUpAfter(ended)),
    telemetry: monitor.telemetry,
    stack: RUN_STACK,
    reportingInstance: RUN_STACK,
    healthyTargets: targetGroups({ profile }),
    clustersPerTick: CLUSTERS_AT_ONCE,
    table: tableUntil,
  });
  try {
    const by = `${hostname()}/${process.pid}`;
    await runClaimedTicks(environment, { by, clock: runnerClock(clock.nowMs), monitor }, ended);
    await reading;
  } finally {
    await server?.close();
    await close();
  }
}

/** The maximum number of clusters that have series of their own. With more clusters, a scrape would be too large. */
const MOST_SERIES_CLUSTERS = 1_000;
const READ_EVERY_MS = 60_000;

/** Reads the status of all clusters once a minute. If the table does not answer, the metrics keep the last status. */
async function keepReading({ tableUntil, tableName, clock }: OpenTable, monitor: RunMonitor, ended: AbortSignal) {
  while (!ended.aborted) {
    const table = tableUntil(AbortSignal.any([ended, AbortSignal.timeout(READ_EVERY_MS)]));
    try {
      const list = await listClusters(table);
      const isTooLong = list.clusters.length > MOST_SERIES_CLUSTERS;
      const request = { nowMs: clock.nowMs(), tableName, details: 'brief' } as const;
      monitor.show(isTooLong ? undefined : await statusOfList(table, list, request));
    } catch {
      // Not reported here, because the claims of ticks report that the table does not answer.
    }
    await sleep(READ_EVERY_MS, undefined, { signal: ended }).catch(() => undefined);
  }
}

interface Claimant {
  /** The process that claims the ticks, as information for users. */
  readonly by: string;
  readonly monitor: Pick<RunMonitor, 'tried' | 'claimed'>;
}

/** Tries to claim each tick of each loop, and runs the ticks that it claimed. A slow tick does not delay other ticks. */
export async function runClaimedTicks(
  environment: Environment,
  { clock, ...claimant }: Claimant & { readonly clock: RunnerClock },
  ended: AbortSignal,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const jobs = LOOPS.map((loop) => ({
    id: loop,
    everyMs: SCHEDULE_SECONDS[loop] * 1000,
    invoke: async (tickMs: number) => {
      const tick = runIfClaimed(environment, loop, tickMs, claimant).finally(() => running.delete(tick));
      running.add(tick);
    },
  }));
  await runOnSchedules(jobs, clock, ended);
  await Promise.all(running);
}

/** Runs a tick if this process can claim it. Never throws, because the next tick is the retry. */
async function runIfClaimed(
  environment: Environment,
  loop: Loop,
  tickMs: number,
  { by, monitor }: Claimant,
): Promise<void> {
  const { stack = RUN_STACK, table, telemetry } = environment;
  monitor.tried(loop);
  try {
    const isOurs = await withinDeadline(environment, QUEUEING_MS, (signal) =>
      claimTick(table(signal), { stack, loop, tickMs }, by),
    );
    monitor.claimed(loop, isOurs ? 'won' : 'lost');
    if (!isOurs) return;
  } catch (error) {
    monitor.claimed(loop, 'failed');
    telemetry({ loop }).log('error', 'tick not claimed', { errors: [errorSentence(error)] });
    return;
  }
  await invokeLoop(environment, loop, scheduledEvent(tickMs));
}

/** The partition of the claimed ticks. No cluster has this name, because a cluster name cannot begin with "#". */
const TICKS = '#ticks';
const SCHEMA = 1;

const claimShape = z.object({ dueAtMs: z.number(), by: z.string() });

/** Claims a tick in `#ticks/<stack>/<loop>`. Returns whether the caller runs the tick: only one of several claims succeeds. */
export async function claimTick(
  table: KeyValueTable,
  { stack, loop, tickMs }: { readonly stack: string; readonly loop: Loop; readonly tickMs: number },
  by: string,
): Promise<boolean> {
  const everyMs = SCHEDULE_SECONDS[loop] * 1000;
  const dueAtMs = Math.floor(tickMs / everyMs) * everyMs;
  const key = `${stack}/${loop}`;
  const previous = await table.get(TICKS, key);
  const claimed = previous && decodeItem(previous, claimShape, SCHEMA).dueAtMs;
  // A process whose clock is ahead may have claimed a tick after the next one. Such a claim must not stop the loop.
  if (claimed !== undefined && claimed >= dueAtMs && claimed <= dueAtMs + everyMs) return false;
  const item = { cluster: TICKS, key, schema: SCHEMA, value: { dueAtMs, by }, writesKept: 8 };
  return (await table.put(item, previous)).outcome === 'won';
}
