import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { handler as clusterIpRepair } from '../functions/cluster-ip-repair.ts';
import { handler as kubernetesService } from '../functions/kubernetes-service.ts';
import { handler as nodePortRepair } from '../functions/node-port-repair.ts';
import { handler as systemNamespaces } from '../functions/system-namespaces.ts';
import type { ClusterSpec, Loop } from '../lib/cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../lib/cluster/schedules.ts';
import type { Environment } from '../lib/dispatch/environment.ts';
import { DispatchError } from '../lib/dispatch/errors.ts';
import type { scheduled } from '../lib/dispatch/scheduled.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { createTable } from '../lib/table/dynamodb-create-table.ts';
import { TableError } from '../lib/table/errors.ts';
import type { TelemetryFactory } from '../lib/telemetry/telemetry.ts';
import { announcement } from './announcement.ts';
import { type Job, type RunnerClock, runOnSchedules } from './clock-driven-runner.ts';
import { localEnvironment, TABLE_NAME } from './local-environment.ts';
import { openCluster } from './open-cluster.ts';
import { plainTelemetry } from './plain-telemetry.ts';
import { readableTelemetry } from './readable-telemetry.ts';
import { StartError } from './start-error.ts';
import type { StartOptions } from './start-options.ts';
import { tableServerClient } from './table-server.ts';

/** In the order of the first invocations: namespaces before what lives in them, ranges before what allocates. */
const HANDLERS: readonly (readonly [Loop, ReturnType<typeof scheduled>])[] = [
  ['system-namespaces', systemNamespaces],
  ['cluster-ip-repair', clusterIpRepair],
  ['node-port-repair', nodePortRepair],
  ['kubernetes-service', kubernetesService],
];

const REGISTERING_MS = 10_000;

/** How long passes that are under way may go on once the end was asked for. */
const ENDING_MS = 5_000;

/**
 * Runs the loops until the end is asked for; passes that are under way then may end, or are given up after five seconds.
 * @throws StartError when it cannot begin.
 */
export async function run({ verbose, real }: StartOptions, ended: AbortSignal): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  await using cluster = await openCluster(real);
  const client = tableServerClient(cluster.tableServer);
  const { environment, close } = localEnvironment({
    client,
    loadKubeconfig: cluster.loadKubeconfig,
    end: givenUpAfter(ended),
    telemetry: telemetryOf(verbose, say),
  });
  try {
    await register(client, environment, cluster.spec);
    for (const line of announcement(cluster.spec, cluster)) say(line);
    let underWay = 0;
    ended.addEventListener('abort', () => {
      if (underWay > 0) say(`ending: what is under way has ${ENDING_MS / 1000} s; Ctrl-C once more ends it at once.`);
    });
    const counted = (by: 1 | -1) => {
      underWay += by;
    };
    await runOnSchedules(jobs(environment, counted), realClock, ended);
    say(real === undefined ? 'ended, and the embedded cluster with it.' : 'ended; the endpoints stay as they are.');
  } finally {
    await close();
    client.destroy();
  }
}

function telemetryOf(verbose: boolean, write: (line: string) => void): TelemetryFactory {
  const nowMs = Date.now;
  return verbose
    ? (labels) => readableTelemetry({ ...labels, nowMs, verbose, write })
    : plainTelemetry({ nowMs, write });
}

async function register(client: DynamoDBClient, environment: Environment, spec: ClusterSpec): Promise<void> {
  try {
    await createTable(client, TABLE_NAME, { pollMs: 20 });
    await registerCluster(environment.table(AbortSignal.timeout(REGISTERING_MS)), spec);
  } catch (error) {
    if (error instanceof TableError) throw new StartError(5, error.message, { cause: error });
    throw error;
  }
}

function jobs(environment: Environment, counted: (by: 1 | -1) => void): Job[] {
  const begun = new Set<Loop>();
  return HANDLERS.map(([id, handler]) => ({
    id,
    everyMs: SCHEDULE_SECONDS[id] * 1000,
    invoke: async (tickMs) => {
      // Who starts it wants to see it run, also when its last run has only just ended.
      const event = begun.has(id) ? scheduledEvent(tickMs) : { force: true };
      begun.add(id);
      const endMs = Date.now() + 60_000;
      const context = { environment, awsRequestId: randomUUID(), getRemainingTimeInMillis: () => endMs - Date.now() };
      counted(1);
      // What fails an invocation it has told itself; the next tick tries again.
      await handler(event, context).catch(() => undefined);
      counted(-1);
    },
  }));
}

function scheduledEvent(tickMs: number): object {
  return { 'detail-type': 'Scheduled Event', time: `${new Date(tickMs).toISOString().slice(0, 19)}Z` };
}

const realClock: RunnerClock = {
  nowMs: Date.now,
  sleepUntil: (untilMs, signal) =>
    sleep(Math.max(0, untilMs - Date.now()), undefined, { signal }).catch(() => undefined),
};

/** Aborts a little after the end was asked for: what is under way then has had its time. */
function givenUpAfter(ended: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const giveUp = () => {
    const message = 'Not done when the process had to end; the next start reads everything anew.';
    controller.abort(new DispatchError('DeadlineExceeded', message));
  };
  ended.addEventListener('abort', () => setTimeout(giveUp, ENDING_MS).unref(), { once: true });
  return controller.signal;
}
