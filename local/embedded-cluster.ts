import { randomInt } from 'node:crypto';
import path from 'node:path';
import { parseClusterSpec } from '../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../cli/spec/spec-fault.ts';
import { parseKubeconfig } from '../lib/kubernetes/kubeconfig.ts';
import type { ClusterSpec, Loop } from '../lib/spec/cluster-spec.ts';
import { keepFile, shellWord } from './data-folder.ts';
import type { LocalCluster } from './local-cluster.ts';
import { localTable } from './local-environment.ts';
import { newRunKey } from './local-request.ts';
import { startApiServers } from './stand-in/api-servers.ts';
import { kubeconfigOf, newIdentity } from './stand-in/identity.ts';
import { StandInApiServer } from './stand-in/stand-in-api-server.ts';
import { tableAllocation } from './stand-in/table-allocation.ts';
import { startTableServer } from './table-server.ts';

export interface EmbeddedKind {
  readonly name: string;
  /** The published addresses of its API servers. */
  readonly addresses: readonly [string, ...string[]];
  readonly serviceClusterIPRange: string;
  /** Intervals shorter than the schedules of the functions. Only an embedded cluster can have them, not a spec in a file. */
  readonly intervalSeconds: Partial<Readonly<Record<Loop, number>>>;
  readonly notes: readonly string[];
}

/** The addresses are for documentation (RFC 5737), so no host has them. */
export const EMBEDDED: EmbeddedKind = {
  name: 'embedded',
  addresses: ['192.0.2.1'],
  serviceClusterIPRange: '10.0.0.0/24',
  intervalSeconds: {},
  notes: [],
};

/**
 * Starts a control plane in this process. Its stand-in API servers allocate from a table in memory.
 * @throws StartError if its kubeconfig cannot be written to the folder
 */
export async function openEmbedded(kind: EmbeddedKind, folder: string): Promise<LocalCluster> {
  const key = newRunKey();
  const tableServer = await startTableServer({ key });
  const nowMs = Date.now;
  const allocation = tableAllocation({
    table: localTable(tableServer.client),
    cluster: kind.name,
    pick: randomInt,
    nowMs,
  });
  const standIn = new StandInApiServer({ allocation, nowMs });
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
    server: `${apiServer} (${kind.addresses.length > 1 ? 'stand-in API servers' : 'a stand-in API server'} in this process)`,
    folder,
    kubeconfigFile,
    tableServer,
    tableFolder: 'memory, and end with it',
    notes: [...kind.notes, ...(process.env['KUBECONFIG'] === undefined ? [] : [KUBECONFIG_IGNORED])],
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
