import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseClusterSpec } from '../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../cli/spec/spec-fault.ts';
import { kubeconfigPlace, type LoadKubeconfig } from '../lib/aws/stored-kubeconfig.ts';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { loadKubeconfigFile, parseKubeconfig } from '../lib/kubernetes/kubeconfig.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import { dataFolder, shellWord } from './data-folder.ts';
import { DEMO, DEMO_NOTES, type DemoWorld } from './demo.ts';
import { EMBEDDED, type EmbeddedKind, startEmbeddedCluster } from './embedded-cluster.ts';
import { runPlugin } from './kubeconfig-plugins.ts';
import { LOCAL_TABLE } from './local-environment.ts';
import { newRunKey } from './local-request.ts';
import { refuseSecond } from './running.ts';
import { codeOf, type RealCluster, StartError, type StartOptions } from './start-options.ts';
import { tableServerClient } from './table-client.ts';
import { openTableFolder, startTableServer, type TableServer } from './table-server.ts';

export interface LocalCluster extends AsyncDisposable {
  readonly spec: ClusterSpec;
  /** Its API server, as users read it. */
  readonly server: string;
  /** Where the table is, as users read it. */
  readonly tableFolder: string;
  readonly notes: readonly string[];
  readonly hints: readonly string[];
  /** The URL of the API server. */
  readonly apiServer: string;
  /** The absolute folder in which other commands find this run. */
  readonly folder: string;
  readonly kubeconfigFile: string;
  /** A context in the kubeconfig file. Default: the file's current context. */
  readonly context?: string;
  readonly tableServer: TableServer;
  /** Reads the kubeconfig that was named at the start. */
  readonly loadKubeconfig: LoadKubeconfig;
  readonly demo?: DemoWorld;
}

/**
 * Opens a cluster.
 * @throws StartError if another process uses the cluster's folder, or if a part of the cluster cannot be opened
 */
export function openCluster({ real, demo = false, dataFolder: named }: StartOptions): Promise<LocalCluster> {
  if (real !== undefined) return openReal(real, named);
  return demo ? openEmbedded(DEMO, named) : openEmbedded(EMBEDDED, named);
}

async function openEmbedded(kind: EmbeddedKind, named: string | undefined): Promise<LocalCluster> {
  const folder = dataFolder(kind.name, named);
  await refuseSecond(folder);
  const key = newRunKey();
  const tableServer = await startTableServer({ key });
  const client = tableServerClient(tableServer);
  const closeTable = async () => {
    client.destroy();
    await tableServer.close();
  };
  const table = dynamoDbTable({
    client,
    tableName: LOCAL_TABLE,
    deadline: new AbortController().signal,
    nowMs: Date.now,
    newWriteId: randomUUID,
  });
  const options = { kind, table, nowMs: Date.now, folder, key };
  const cluster = await startEmbeddedCluster(options).catch(async (error: unknown) => {
    await closeTable();
    throw error;
  });
  const { spec, server, kubeconfig, kubeconfigFile } = cluster;
  const isDemo = kind === DEMO;
  return {
    spec,
    apiServer: server,
    server: `${server} (${isDemo ? 'stand-in API servers' : 'a stand-in API server'} in this process)`,
    folder,
    kubeconfigFile,
    tableServer,
    tableFolder: 'memory, and end with it',
    notes: [...(isDemo ? DEMO_NOTES : []), ...notReadNote()],
    hints: hintsFor(kubeconfigFile),
    loadKubeconfig: () => parseKubeconfig(kubeconfig, 'of the embedded cluster'),
    ...(isDemo && { demo: cluster }),
    [Symbol.asyncDispose]: async () => {
      await cluster.close();
      await closeTable();
    },
  };
}

const EXAMPLE_SERVICE =
  '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}}';

/** Returns commands that show what the loops do. */
function hintsFor(kubeconfigFile: string): string[] {
  const kubectl = `kubectl --kubeconfig ${shellWord(kubeconfigFile)}`;
  return [
    `echo '${EXAMPLE_SERVICE}' | ${kubectl} apply -f -     # takes an address`,
    `${kubectl} get services`,
    `${kubectl} delete endpoints kubernetes     # back within 10 s`,
  ];
}

function notReadNote(): string[] {
  if (process.env['KUBECONFIG'] === undefined) return [];
  return ['KUBECONFIG is set but ignored: name a cluster with --kubeconfig FILE and -f cluster.yml.'];
}

async function openReal(real: RealCluster, named: string | undefined): Promise<LocalCluster> {
  const spec = await readSpec(real.specFile);
  const kubeconfig = kubeconfigFor(spec, real);
  const { context } = kubeconfig;
  const loadKubeconfig = () => loadKubeconfigFile(kubeconfig.file, { ...kubeconfig, runPlugin });
  const { server } = await orStartError(3, loadKubeconfig());
  const folder = dataFolder(spec.name, named);
  await refuseSecond(folder);
  const tableServer = await openTableFolder(folder, newRunKey());
  return {
    spec,
    apiServer: server,
    server: `${server} (kubeconfig ${kubeconfig.file}${context === undefined ? '' : `, context ${context}`})`,
    folder,
    kubeconfigFile: kubeconfig.file,
    ...(context !== undefined && { context }),
    tableServer,
    tableFolder: folder,
    notes: spec.allocator === 'table' ? [TABLE_ALLOCATES] : [],
    hints: [],
    loadKubeconfig,
    [Symbol.asyncDispose]: () => tableServer.close(),
  };
}

const TABLE_ALLOCATES =
  'allocator table: stock API servers allocate beside the table unless they call the webhook (docs/admission.md).';

/** Returns the kubeconfig. That of the command line is for this run only: the spec keeps the kubeconfig of the functions. */
function kubeconfigFor(spec: ClusterSpec, { specFile, kubeconfigFile, context }: RealCluster) {
  if (kubeconfigFile !== undefined) {
    return { file: path.resolve(kubeconfigFile), ...(context !== undefined && { context }) };
  }
  const { kubeconfig } = spec;
  if (!('file' in kubeconfig)) {
    const message = `${specFile} names ${kubeconfigPlace(spec)} as its kubeconfig, which is for the functions: name a file with --kubeconfig.`;
    throw new StartError(3, message);
  }
  const chosen = context ?? kubeconfig.context;
  const file = path.resolve(path.dirname(specFile), kubeconfig.file);
  return { file, ...(chosen !== undefined && { context: chosen }) };
}

async function readSpec(file: string): Promise<ClusterSpec> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartError(3, `The spec ${file} cannot be read (${codeOf(error)}): name a file that can, with -f.`);
  });
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new StartError(3, describeFaults(file, result.faults));
  return result.spec;
}

async function orStartError<T>(exitCode: StartError['exitCode'], attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw new StartError(exitCode, error instanceof Error ? error.message : String(error), { cause: error });
  }
}
