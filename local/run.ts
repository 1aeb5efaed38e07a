import path from 'node:path';
import type { Environment } from '../lib/runtime/environment.ts';
import { registerCluster } from '../lib/table/cluster-registration.ts';
import { TableError } from '../lib/table/key-value-table.ts';
import { runnerClock, runOnSchedules, scheduledLoops } from './clock-driven-runner.ts';
import { writeRunning } from './data-folder.ts';
import { playStory, STORY, type Stage } from './demo.ts';
import { logLine, type Paint, sentenceTelemetry } from './human-telemetry.ts';
import { type LocalCluster, StartError, type StartOptions } from './local-cluster.ts';
import { ENDING_MS, givenUpAfter, kubeconfigOfEach, LOCAL_TABLE, localEnvironment } from './local-environment.ts';
import { openCluster } from './open-cluster.ts';
import { openAdmission } from './serve-admission.ts';

const REGISTERING_MS = 10_000;

export interface RunHooks {
  /** Serves the status page; called before the first pass. */
  readonly servePage?: (
    environment: Environment,
    cluster: string,
  ) => Promise<{ readonly url: string; close(): Promise<void> }>;
  readonly hints: readonly string[];
  /** Writes `line` and a line break. `line` has no line break, and may contain unescaped text of a cluster. */
  readonly write: (line: string) => void;
  readonly paint: Paint;
}

/**
 * Runs the loops until the signal `ended` aborts. Passes that are still running have five more seconds to finish.
 * @throws StartError if the run cannot begin, or the cluster is no longer registered
 */
export async function run(options: StartOptions, ended: AbortSignal, hooks: RunHooks): Promise<void> {
  const { write, paint } = hooks;
  await using cluster = await openCluster(options, { signal: ended, say: write });
  const { spec, tableServer, world } = cluster;
  const { environment, close } = localEnvironment({
    client: tableServer.client,
    loadKubeconfig: kubeconfigOfEach(spec.name, cluster.loadKubeconfig),
    end: givenUpAfter(ended),
    telemetry: sentenceTelemetry({ nowMs: Date.now, own: spec.name, write, paint }),
  });
  await using _connections = atEnd(close);
  await registerCluster(environment.table(AbortSignal.timeout(REGISTERING_MS)), spec).catch((error: unknown) => {
    throw error instanceof TableError ? new StartError(5, error.message, { cause: error }) : error;
  });
  await using webhook = await webhookOf(options, environment, cluster);
  const page = await hooks.servePage?.(environment, spec.name);
  await using _page = atEnd(async () => page?.close());
  // Other commands find the loops by this file.
  const removeFile = await writeRunning(cluster.folder, {
    pid: process.pid,
    startedAt: new Date().toISOString(),
    cluster: spec.name,
    tableEndpoint: tableServer.endpoint,
    tableName: LOCAL_TABLE,
    key: tableServer.key,
    apiServer: cluster.apiServer,
    kubeconfig: cluster.kubeconfigFile,
    context: cluster.context,
    page: page?.url,
  });
  await using _file = atEnd(async () => removeFile());
  const notes = [...cluster.notes, ...(webhook?.notes ?? [])];
  const hints = [...cluster.hints, ...hooks.hints];
  for (const line of announcement({ ...cluster, notes, hints }, page?.url)) write(line);
  const ending = `ending: running passes have ${ENDING_MS / 1000} s to finish; press Ctrl-C again to end at once.`;
  ended.addEventListener('abort', () => write(ending));
  await runOnSchedules(scheduledLoops(environment, spec), realClock, ended, async (signal) => {
    if (world && options.demo) await playStory(STORY, stage(world, hooks), signal);
  });
  write(world ? `ended, and the ${spec.name} cluster with it.` : 'ended; the endpoints are unchanged.');
}

function atEnd(end: () => Promise<void>): AsyncDisposable {
  return { [Symbol.asyncDispose]: end };
}

async function webhookOf({ real }: StartOptions, environment: Environment, { spec, folder }: LocalCluster) {
  const port = real?.admissionPort;
  if (port === undefined) return undefined;
  if (spec.allocator === 'table') {
    return openAdmission(environment, { cluster: spec.name, folder: path.join(folder, 'admission'), port });
  }
  const fault = `--admission needs "allocator: table" in the spec of ${spec.name}: its API servers allocate.`;
  throw new StartError(3, fault);
}

/** Returns the information for the user before the first pass: the cluster, the possible writes, and what to expect. */
function announcement(
  { spec, apiServer, source, folder, world, notes, hints }: LocalCluster,
  page: string | undefined,
): string[] {
  return [
    `cluster ${spec.name} at ${apiServer} (${source})`,
    ...(page === undefined ? [] : [`Status page: ${page}`]),
    `mode ${spec.mode}, allocator ${spec.allocator}`,
    spec.mode === 'observe'
      ? 'Nothing is written to the cluster. The loops report what they would write.'
      : 'The loops write namespaces, the Service default/kubernetes with its endpoints, its ServiceCIDR, and events.',
    `Leases, ranges and run records are kept in ${world === undefined ? folder : 'memory, and end with it'}.`,
    ...notes,
    ...(hints.length === 0 ? [] : ['', 'Try, in another terminal:', ...hints.map((hint) => `  ${hint}`)]),
    '',
    'All loops run now, and then at their intervals. A pass that changes and finds nothing is silent.',
    'Press Ctrl-C to end.',
    '',
  ];
}

function stage(world: Stage['world'], { write, paint }: RunHooks): Stage {
  const print: Stage['print'] = (event, outlook) => {
    write(logLine(Date.now(), 'demo:', paint('bold', event)));
    write(logLine(Date.now(), '', paint('dim', `-> ${outlook}`)));
  };
  return { world, clock: realClock, print };
}

const realClock = runnerClock(Date.now);
