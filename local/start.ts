import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { handler as clusterIpRepair } from '../functions/cluster-ip-repair.ts';
import { handler as kubernetesService } from '../functions/kubernetes-service.ts';
import { handler as nodePortRepair } from '../functions/node-port-repair.ts';
import { handler as systemNamespaces } from '../functions/system-namespaces.ts';
import type { Loop } from '../lib/cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../lib/cluster/schedules.ts';
import type { Environment } from '../lib/dispatch/environment.ts';
import type { scheduled } from '../lib/dispatch/scheduled.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { createTable } from '../lib/table/dynamodb-create-table.ts';
import { announcement } from './announcement.ts';
import { type Job, type RunnerClock, runOnSchedules } from './clock-driven-runner.ts';
import { localEnvironment, TABLE_NAME } from './local-environment.ts';
import { openCluster } from './open-cluster.ts';
import { readableTelemetry } from './readable-telemetry.ts';
import { StartError } from './start-error.ts';
import { parseStartOptions, type StartOptions } from './start-options.ts';
import { tableServerClient } from './table-server.ts';

/** In the order of the first invocations: namespaces before what lives in them, ranges before what allocates. */
const HANDLERS: readonly (readonly [Loop, ReturnType<typeof scheduled>])[] = [
  ['system-namespaces', systemNamespaces],
  ['cluster-ip-repair', clusterIpRepair],
  ['node-port-repair', nodePortRepair],
  ['kubernetes-service', kubernetesService],
];

/** How long passes that are under way may go on after Ctrl-C. */
const ENDING_MS = 5_000;

async function main(): Promise<number> {
  const asked = parseStartOptions(process.argv.slice(2));
  if ('help' in asked) {
    process.stdout.write(asked.help);
    return 0;
  }
  if ('usage' in asked) {
    process.stderr.write(`${asked.usage}\nTry: npm start -- --help\n`);
    return 2;
  }
  try {
    await run(asked.run, endOfProcess());
    return 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
}

async function run({ verbose, real }: StartOptions, ended: AbortSignal): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  await using cluster = await openCluster(real);
  const client = tableServerClient(cluster.tableServer);
  const { environment, close } = localEnvironment({
    client,
    loadKubeconfig: cluster.loadKubeconfig,
    telemetry: (labels) => readableTelemetry({ ...labels, nowMs: Date.now, verbose, write: say }),
  });
  try {
    await createTable(client, TABLE_NAME, { pollMs: 20 });
    const table = environment.table(ended);
    await registerCluster(table, cluster.spec);
    for (const line of announcement(cluster.spec, cluster.server, cluster.tableFolder)) say(line);
    say('Ctrl-C ends it, and leaves everything as it then is.\n');
    await orGivenUp(runOnSchedules(jobs(environment), realClock, ended), ended);
    say('ended; the endpoints stay as they are.');
  } finally {
    await close();
    client.destroy();
  }
}

function jobs(environment: Environment): Job[] {
  return HANDLERS.map(([id, handler]) => ({
    id,
    everyMs: SCHEDULE_SECONDS[id] * 1000,
    invoke: async (tickMs) => {
      const event = { 'detail-type': 'Scheduled Event', time: `${new Date(tickMs).toISOString().slice(0, 19)}Z` };
      const endMs = Date.now() + 60_000;
      const context = { environment, awsRequestId: randomUUID(), getRemainingTimeInMillis: () => endMs - Date.now() };
      // What fails an invocation it has told itself; the next tick tries again.
      await handler(event, context).catch(() => undefined);
    },
  }));
}

const realClock: RunnerClock = {
  nowMs: Date.now,
  sleepUntil: (untilMs, signal) =>
    sleep(Math.max(0, untilMs - Date.now()), undefined, { signal }).catch(() => undefined),
};

/** Waits for the runner; once the end was asked for, only a little longer. */
async function orGivenUp(running: Promise<void>, ended: AbortSignal): Promise<void> {
  const givenUp = new Promise<void>((resolve) => {
    ended.addEventListener('abort', () => setTimeout(resolve, ENDING_MS).unref(), { once: true });
  });
  await Promise.race([running, givenUp]);
}

/** Aborts at the first SIGINT or SIGTERM; a second one ends the process at once. */
function endOfProcess(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(130);
      controller.abort();
    });
  }
  return controller.signal;
}

process.exitCode = await main();
