import { hostname } from 'node:os';
import * as z from 'zod/mini';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { createEnvironment } from '../../lib/runtime/cluster-connections.ts';
import { QUEUEING_MS, withinDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
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
import type { OpenTable, TableOptions } from '../open-table.ts';

/** The name of the stack that owns a cluster if `kbctl run` runs its loops. */
const RUN_STACK = 'kbctl-run';

/** The number of simultaneous passes of a loop. It is high, so that clusters that do not answer do not delay the others. */
const CLUSTERS_AT_ONCE = 64;

/** Runs the loops of all clusters of the table until `ended` aborts. Running passes then have five seconds to finish. */
export async function serveTable(
  { tableUntil, clock }: OpenTable,
  { region, profile }: TableOptions,
  ended: AbortSignal,
): Promise<void> {
  const sources = kubeconfigSources({ region, profile });
  const { environment, close } = createEnvironment({
    nowMs: clock.nowMs,
    clock,
    // In a pod, as in a Lambda function, a kubeconfig must not lead to an address of the host.
    loadKubeconfig: kubeconfigLoader('.', sources, { refuseLocal: 'KUBERNETES_SERVICE_HOST' in process.env }),
    startDeadline: endingWith(givenUpAfter(ended)),
    telemetry: powertoolsTelemetry,
    stack: RUN_STACK,
    reportingInstance: RUN_STACK,
    healthyTargets: targetGroups(),
    clustersPerTick: CLUSTERS_AT_ONCE,
    table: tableUntil,
  });
  try {
    await runClaimedTicks(environment, { by: `${hostname()}/${process.pid}`, clock: runnerClock(clock.nowMs) }, ended);
  } finally {
    await close();
  }
}

/** Claims each tick of each loop, and runs the ticks that this process gets. A slow tick delays no other tick. */
export async function runClaimedTicks(
  environment: Environment,
  { by, clock }: { readonly by: string; readonly clock: RunnerClock },
  ended: AbortSignal,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const jobs = LOOPS.map((loop) => ({
    id: loop,
    everyMs: SCHEDULE_SECONDS[loop] * 1000,
    invoke: async (tickMs: number) => {
      const tick = runIfClaimed(environment, loop, tickMs, by).finally(() => running.delete(tick));
      running.add(tick);
    },
  }));
  await runOnSchedules(jobs, clock, ended);
  await Promise.all(running);
}

/** Runs a tick if this process can claim it. Never throws, because the next tick is the retry. */
async function runIfClaimed(environment: Environment, loop: Loop, tickMs: number, by: string): Promise<void> {
  const { stack = RUN_STACK, table, telemetry } = environment;
  const everyMs = SCHEDULE_SECONDS[loop] * 1000;
  const tick = { stack, loop, everyMs, dueAtMs: Math.floor(tickMs / everyMs) * everyMs };
  try {
    const isOurs = await withinDeadline(environment, QUEUEING_MS, (signal) => claimTick(table(signal), tick, by));
    if (!isOurs) return;
  } catch (error) {
    telemetry({ loop }).log('error', 'tick not claimed', { errors: [errorSentence(error)] });
    return;
  }
  await invokeLoop(environment, loop, scheduledEvent(tickMs));
}

/** A cluster name cannot begin with "#". */
const TICKS = '#ticks';
const SCHEMA = 1;

const claimShape = z.object({
  dueAtMs: z.number(),
  /** The process that claimed the tick, as information for users. */
  by: z.string(),
});

export interface Tick {
  readonly stack: string;
  readonly loop: Loop;
  readonly everyMs: number;
  /** A multiple of `everyMs`. */
  readonly dueAtMs: number;
}

/**
 * Writes `#ticks/<stack>/<loop>`, the last claimed tick of a loop. Of the processes that claim a tick, one gets it.
 * @returns whether the caller runs the tick
 */
export async function claimTick(
  table: KeyValueTable,
  { stack, loop, everyMs, dueAtMs }: Tick,
  by: string,
): Promise<boolean> {
  const key = `${stack}/${loop}`;
  const previous = await table.get(TICKS, key);
  const claimed = previous && decodeItem(previous, claimShape, SCHEMA).dueAtMs;
  // A claim that is further ahead was made by a process whose clock was ahead. It must not stop the loop.
  if (claimed !== undefined && claimed >= dueAtMs && claimed <= dueAtMs + everyMs) return false;
  const item = { cluster: TICKS, key, schema: SCHEMA, value: { dueAtMs, by }, writesKept: 8 };
  const { outcome } = await table.put(item, previous);
  return outcome === 'won';
}
