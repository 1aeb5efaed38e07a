import { randomInt, randomUUID } from 'node:crypto';
import path from 'node:path';
import { parseClusterSpec } from '../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../cli/spec/spec-fault.ts';
import type { ClusterSpec, Loop } from '../lib/cluster/cluster-spec.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { keepFile } from './data-folder.ts';
import { startApiServers } from './stand-in/api-servers.ts';
import { kubeconfigOf, newIdentity } from './stand-in/identity.ts';
import { StandInApiServer } from './stand-in/stand-in-api-server.ts';
import { tableAllocation } from './stand-in/table-allocation.ts';

export interface EmbeddedKind {
  readonly name: string;
  /** The published addresses of its API servers. */
  readonly addresses: readonly [string, ...string[]];
  readonly serviceClusterIPRange: string;
  /** Shorter intervals than the schedules, which a spec in a file may not set. */
  readonly intervalSeconds: Partial<Readonly<Record<Loop, number>>>;
}

/** Addresses for documentation (RFC 5737): no host has them. */
export const EMBEDDED: EmbeddedKind = {
  name: 'embedded',
  addresses: ['192.0.2.1'],
  serviceClusterIPRange: '10.0.0.0/24',
  intervalSeconds: {},
};

/** A control plane in this process: stand-in API servers whose Services allocate through the table. */
export type EmbeddedCluster = Awaited<ReturnType<typeof startEmbeddedCluster>>;

export interface EmbeddedOptions {
  readonly kind: EmbeddedKind;
  readonly table: KeyValueTable;
  readonly nowMs: () => number;
  /** The absolute folder of its kubeconfig. */
  readonly folder: string;
  /** The key that its API servers require. */
  readonly key: string;
}

/**
 * Starts an embedded cluster.
 * @returns the parts of the cluster; `server` is the URL of its first API server, `kubeconfig` the content of the file that
 * the spec names
 * @throws StartError if that file cannot be written
 */
export async function startEmbeddedCluster(options: EmbeddedOptions) {
  const { kind, table, nowMs, folder, key } = options;
  const allocation = tableAllocation({ table, cluster: kind.name, pick: randomInt, nowMs });
  const standIn = new StandInApiServer({ allocation, nowMs, newUid: randomUUID });
  const identity = newIdentity(key);
  const apiServers = await startApiServers(standIn, identity, kind.addresses);
  const server = apiServers.urlOf(kind.addresses[0]);
  const kubeconfig = kubeconfigOf(kind.name, server, identity);
  const kubeconfigFile = path.join(folder, 'kubeconfig');
  const remove = await keepFile(kubeconfigFile, kubeconfig).catch(async (error: unknown) => {
    await apiServers.close();
    throw error;
  });
  const close = () => {
    remove();
    return apiServers.close();
  };
  const spec = embeddedSpec(kind, kubeconfigFile, (address) => apiServers.urlOf(address));
  return { spec, standIn, allocation, apiServers, server, kubeconfig, kubeconfigFile, close };
}

/** Returns a spec with defaults, except that the table allocates, and probes go to this process. */
export function embeddedSpec(
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
