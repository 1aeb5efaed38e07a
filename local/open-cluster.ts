import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseClusterSpec } from '../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../cli/spec/spec-fault.ts';
import { loadKubeconfigFile, parseKubeconfig } from '../lib/kubernetes/kubeconfig.ts';
import type { ClusterSpec } from '../lib/spec/cluster-spec.ts';
import { codeOf } from '../lib/util/values.ts';
import { freeFolder, keepFile } from './data-folder.ts';
import { DEMO } from './demo.ts';
import { type PluginTerminal, pluginRunner } from './kubeconfig-plugins.ts';
import {
  type EmbeddedKind,
  type LocalCluster,
  type RealCluster,
  StartError,
  type StartOptions,
  shellWord,
} from './local-cluster.ts';
import { localTable } from './local-environment.ts';
import { newRunKey } from './local-server.ts';
import { startApiServers } from './stand-in/api-servers.ts';
import { kubeconfigOf, newIdentity } from './stand-in/identity.ts';
import { StandInApiServer } from './stand-in/stand-in-api-server.ts';
import { tableAllocation } from './stand-in/table-allocation.ts';
import { openTableFolder, startTableServer } from './table-server.ts';

/** Opens a cluster. @throws StartError if another process uses its folder, or its spec, kubeconfig or table cannot be opened */
export async function openCluster(
  { real, demo = false, dataFolder: named }: StartOptions,
  terminal: PluginTerminal,
): Promise<LocalCluster> {
  if (real !== undefined) return openReal(real, named, terminal);
  const kind = demo ? DEMO : EMBEDDED;
  return openEmbedded(kind, await freeFolder(kind.name, named));
}

async function openReal(real: RealCluster, named: string | undefined, terminal: PluginTerminal): Promise<LocalCluster> {
  const spec = await readSpec(real.specFile);
  const { file, context } = kubeconfigFor(spec, real);
  const runPlugin = pluginRunner(terminal);
  // The spec may be changed while the loops run, and may then name another file.
  const loadKubeconfig = async (current: ClusterSpec) => {
    const { file: currentFile, ...options } = kubeconfigFor(current, real);
    return loadKubeconfigFile(currentFile, { runPlugin, ...options });
  };
  const { server } = await loadKubeconfig(spec).catch((error: unknown) => {
    throw new StartError(3, error instanceof Error ? error.message : String(error), { cause: error });
  });
  const folder = await freeFolder(spec.name, named);
  const tableServer = await openTableFolder(folder, newRunKey());
  return {
    spec,
    apiServer: server,
    source: `kubeconfig ${file}${context === undefined ? '' : `, context ${context}`}`,
    folder,
    kubeconfigFile: file,
    context,
    tableServer,
    notes: spec.allocator === 'table' ? [TABLE_ALLOCATES] : [],
    hints: [],
    loadKubeconfig,
    [Symbol.asyncDispose]: () => tableServer.close(),
  };
}

const TABLE_ALLOCATES =
  'allocator table: stock API servers allocate beside the table unless they call the webhook (docs/admission.md).';

/** Returns the kubeconfig of the command line or, if the command line has none, the kubeconfig of the spec. */
function kubeconfigFor(spec: ClusterSpec, { specFile, kubeconfigFile, context }: RealCluster) {
  if (kubeconfigFile !== undefined) return { file: path.resolve(kubeconfigFile), context };
  const { kubeconfig } = spec;
  if (!('file' in kubeconfig)) {
    throw new StartError(3, `${specFile} names a kubeconfig for the functions: name a file with --kubeconfig.`);
  }
  const file = path.resolve(path.dirname(specFile), kubeconfig.file);
  return { file, context: context ?? kubeconfig.context };
}

async function readSpec(file: string): Promise<ClusterSpec> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartError(3, `The spec ${file} cannot be read (${codeOf(error)}): name a file that can, with -f.`);
  });
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new StartError(3, describeFaults(file, result.faults));
  return result.spec;
}

/** The addresses are for documentation (RFC 5737), so no host has them. */
const EMBEDDED: EmbeddedKind = {
  name: 'embedded',
  addresses: ['192.0.2.1'],
  serviceClusterIPRange: '10.0.0.0/24',
};

/** Starts a control plane with a table in memory. @throws StartError if its kubeconfig cannot be written */
async function openEmbedded(kind: EmbeddedKind, folder: string): Promise<LocalCluster> {
  const key = newRunKey();
  const tableServer = await startTableServer({ key });
  const allocation = tableAllocation(localTable(tableServer.client), kind.name, randomInt, Date.now);
  const standIn = new StandInApiServer(allocation, Date.now);
  const identity = newIdentity(key);
  const apiServers = await startApiServers(standIn, identity, kind.addresses);
  const apiServer = apiServers.urlOf(kind.addresses[0]);
  const kubeconfig = kubeconfigOf(kind.name, apiServer, identity);
  const kubeconfigFile = path.join(folder, 'kubeconfig');
  const close = async () => {
    await apiServers.close();
    await tableServer.close();
  };
  const remove = await keepFile(kubeconfigFile, kubeconfig).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const kubectl = `kubectl --kubeconfig ${shellWord(kubeconfigFile)}`;
  return {
    spec: embeddedSpec(kind, kubeconfigFile, (address) => apiServers.urlOf(address)),
    apiServer,
    source: `${kind.addresses.length > 1 ? 'stand-in API servers' : 'a stand-in API server'} in this process`,
    folder,
    kubeconfigFile,
    tableServer,
    notes: [...(kind.notes ?? []), ...(process.env['KUBECONFIG'] === undefined ? [] : [KUBECONFIG_IGNORED])],
    hints: [
      `echo '${EXAMPLE_SERVICE}' | ${kubectl} apply -f -     # takes an address`,
      `${kubectl} get services`,
      `${kubectl} delete endpoints kubernetes     # back within 10 s`,
    ],
    loadKubeconfig: () => parseKubeconfig(kubeconfig, 'of the embedded cluster'),
    world: { standIn, allocation, apiServers },
    [Symbol.asyncDispose]: () => {
      remove();
      return close();
    },
  };
}

const EXAMPLE_SERVICE =
  '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}}';
const KUBECONFIG_IGNORED = 'KUBECONFIG is set but ignored: name a cluster with --kubeconfig FILE and -f cluster.yml.';

/** Returns a spec in mode enforce. The table allocates, and probes go to this process. */
function embeddedSpec(
  { name, addresses, serviceClusterIPRange, intervalSeconds }: EmbeddedKind,
  kubeconfigFile: string,
  urlOf: (address: string) => string,
): ClusterSpec {
  const result = parseClusterSpec(
    JSON.stringify({
      name,
      mode: 'enforce',
      allocator: 'table',
      kubeconfig: { file: kubeconfigFile },
      apiServers: addresses.map((address) => ({ address, probe: { url: `${urlOf(address)}/readyz` } })),
      serviceClusterIPRange,
    }),
  );
  if ('faults' in result) throw new Error(describeFaults('the embedded spec', result.faults));
  return { ...result.spec, intervalSeconds: { ...result.spec.intervalSeconds, ...intervalSeconds } };
}
