import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { chooseAdvertiseAddress } from '../lib/cluster/address-choice.ts';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/cluster/parse-cluster-spec.ts';
import { describeFaults } from '../lib/cluster/spec-fault.ts';
import { type ApiServerAccess, loadKubeconfigFile, parseKubeconfig } from '../lib/kubernetes/kubeconfig.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import type { Announced } from './announcement.ts';
import { startEmbeddedCluster } from './embedded-cluster.ts';
import { readHostNetwork } from './host-network.ts';
import { TABLE_NAME } from './local-environment.ts';
import { StartError } from './start-error.ts';
import type { RealCluster } from './start-options.ts';
import { startTableServer, type TableServer, tableServerClient } from './table-server.ts';

/** The cluster to run on, embedded or real, and its table. */
export interface OpenCluster extends Announced, AsyncDisposable {
  readonly spec: ClusterSpec;
  readonly tableServer: TableServer;
  readonly loadKubeconfig: (spec: ClusterSpec) => Promise<ApiServerAccess>;
}

export function openCluster(real: RealCluster | undefined): Promise<OpenCluster> {
  return real === undefined ? openEmbedded() : openReal(real);
}

async function openEmbedded(): Promise<OpenCluster> {
  const tableServer = await startTableServer();
  const client = tableServerClient(tableServer);
  const table = dynamoDbTable({
    client,
    tableName: TABLE_NAME,
    deadline: new AbortController().signal,
    nowMs: Date.now,
    newWriteId: randomUUID,
  });
  const { spec, server, kubeconfig, close } = await startEmbeddedCluster(table, Date.now);
  return {
    spec,
    server: `${server} (a stand-in API server in this process)`,
    tableServer,
    tableFolder: 'memory, and end with it',
    hints: hintsFor(server),
    loadKubeconfig: () => parseKubeconfig(kubeconfig, 'of the embedded cluster'),
    [Symbol.asyncDispose]: async () => {
      await close();
      client.destroy();
      await tableServer.close();
    },
  };
}

/** What shows best what the loops are for. */
function hintsFor(server: string): string[] {
  const inDefault = `${server}/api/v1/namespaces/default`;
  return [
    '',
    'Try, in another terminal:',
    `  curl ${inDefault}/endpoints/kubernetes`,
    `  curl -X DELETE ${inDefault}/endpoints/kubernetes     # back within 10 s`,
    `  curl ${inDefault}/services -d '{"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}'     # takes an address`,
    ...(process.env['KUBECONFIG'] === undefined
      ? []
      : ['KUBECONFIG is set, and not read: a cluster is named with --kubeconfig FILE and -f cluster.yml.']),
  ];
}

async function openReal({ specFile, kubeconfigFile, context, dataFolder }: RealCluster): Promise<OpenCluster> {
  const written = await readSpec(specFile);
  const kubeconfig = { file: path.resolve(kubeconfigFile), ...(context !== undefined && { context }) };
  const spec = { ...written, kubeconfig };
  const loadKubeconfig = () => loadKubeconfigFile(kubeconfig.file, { ...kubeconfig, allowPlugins: true });
  const { server } = await orStartError(3, loadKubeconfig());
  const tableFolder = path.resolve(dataFolder ?? path.join('.kbctl', spec.name));
  const tableServer = await openFolder(tableFolder);
  return {
    spec,
    server: `${server} (kubeconfig ${kubeconfig.file}${context === undefined ? '' : `, context ${context}`})`,
    tableServer,
    tableFolder,
    hints: [],
    loadKubeconfig,
    [Symbol.asyncDispose]: () => tableServer.close(),
  };
}

async function readSpec(file: string): Promise<ClusterSpec> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new StartError(3, `The spec ${file} cannot be read (${String(code)}): name a file that can, with -f.`);
  });
  // Who runs this on an API server's own host may leave its address to be found.
  const autoAddress = () => chooseAdvertiseAddress({}, readHostNetwork());
  const result = parseClusterSpec(text, { autoAddress });
  if ('faults' in result) throw new StartError(3, describeFaults(file, result.faults));
  return result.spec;
}

async function openFolder(folder: string): Promise<TableServer> {
  try {
    await mkdir(folder, { recursive: true });
    return await startTableServer({ path: folder });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(5, `The table in ${folder} cannot be opened: ${why}. Name another folder with --data.`);
  }
}

async function orStartError<T>(exitCode: StartError['exitCode'], attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw new StartError(exitCode, error instanceof Error ? error.message : String(error), { cause: error });
  }
}
