import { randomInt, randomUUID } from 'node:crypto';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/cluster/parse-cluster-spec.ts';
import { describeFaults } from '../lib/cluster/spec-fault.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { listen } from './stand-in/http-server.ts';
import { StandInApiServer } from './stand-in/stand-in-api-server.ts';
import { tableAllocation } from './stand-in/table-allocation.ts';

/** A control plane in this process: a stand-in API server whose Services allocate through the table. */
export interface EmbeddedCluster {
  readonly spec: ClusterSpec;
  readonly standIn: StandInApiServer;
  readonly server: string;
  readonly kubeconfig: string;
  close(): Promise<void>;
}

const NAME = 'embedded';
/** Of the block for documentation (RFC 5737): it is nobody's. */
const ADDRESS = '192.0.2.1';

export async function startEmbeddedCluster(table: KeyValueTable, nowMs: () => number): Promise<EmbeddedCluster> {
  const ranges = embeddedSpec('http://127.0.0.1');
  const allocation = tableAllocation({
    table,
    cluster: NAME,
    serviceClusterIPRanges: ranges.serviceClusterIPRanges,
    serviceNodePortRange: ranges.serviceNodePortRange,
    rangesGeneration: () => 1,
    pick: randomInt,
  });
  const standIn = new StandInApiServer({ allocation, nowMs, newUid: randomUUID });
  const listening = await listen(standIn);
  return {
    spec: embeddedSpec(listening.url),
    standIn,
    server: listening.url,
    kubeconfig: kubeconfigOf(listening.url),
    close: listening.close,
  };
}

/** All defaults, but for what is embedded: the table allocates, and the probe goes to this process. */
function embeddedSpec(server: string): ClusterSpec {
  const result = parseClusterSpec(
    JSON.stringify({
      name: NAME,
      mode: 'enforce',
      allocator: 'table',
      kubeconfig: { file: 'embedded' },
      apiServers: [{ address: ADDRESS, probe: { url: `${server}/readyz` } }],
    }),
  );
  if ('faults' in result) throw new Error(describeFaults('the embedded spec', result.faults));
  return result.spec;
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: NAME, cluster: { server } }],
    users: [{ name: NAME, user: {} }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME } }],
    'current-context': NAME,
  });
}
