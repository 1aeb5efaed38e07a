import { beforeEach, expect, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import {
  pauseAllClusters,
  registerCluster,
  unregistered,
  updateCluster,
  withMode,
  withOwner,
  withPause,
} from '../../lib/table/cluster-registration.ts';
import { claimCluster, type Pause } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { isRangeKey } from '../../lib/table/ranges.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import type { MemoryCluster } from '../support/memory-cluster.ts';
import { READY } from '../support/pass-world.ts';

const SPEC = { name: 'demo', mode: 'enforce', allocator: 'table', apiServers: [aServer('10.0.0.1')] } as const;
const MINUTE = 60_000;

type Change = (table: KeyValueTable, pause: Pause) => Promise<unknown>;

const CHANGES: readonly [string, Change][] = [
  ['all clusters were paused', (table, pause) => pauseAllClusters(table, pause)],
  ['the cluster was paused', (table, pause) => updateCluster(table, 'demo', withPause(pause))],
  ['the cluster was set to observe', (table) => updateCluster(table, 'demo', withMode('observe'))],
  ['the cluster was unregistered', (table) => updateCluster(table, 'demo', unregistered)],
  ['another stack took over the cluster', (table) => updateCluster(table, 'demo', withOwner('second'))],
  ['the spec was changed', (table) => registerCluster(table, aClusterSpec({ ...SPEC, maxEventsPerPass: 7 }))],
];

const LOOPS = [systemNamespaces, kubernetesService, clusterIpRepair, nodePortRepair];

let world: DispatchWorld;
let cluster: MemoryCluster;
/** The keys of the ranges that the pass wrote. */
let ranges: string[];
/** A function that runs when the pass first reads from the API server. */
let whileReading: (() => Promise<unknown>) | undefined;

const pause = () => ({ untilMs: world.clock.nowMs + 60 * MINUTE, reason: 'upgrade', by: 'ops' });

/** Returns the Kubernetes client of a cluster in which every loop has something to write. */
function connected(): ClusterPort {
  const { port } = cluster;
  const reading = async () => {
    const change = whileReading;
    whileReading = undefined;
    await change?.();
  };
  return {
    ...port,
    get: async (ref) => {
      await reading();
      return port.get(ref);
    },
    async *services() {
      await reading();
      yield [withAddresses('a', '10.0.0.5'), withNodePorts('b', 30_001)];
    },
  };
}

const recorded = (table: KeyValueTable): KeyValueTable => ({
  ...table,
  put: (item, previous) => {
    if (isRangeKey(item.key)) ranges.push(item.key);
    return table.put(item, previous);
  },
});

const environment = (): Partial<Environment> => ({
  stack: 'prod',
  table: (signal) => recorded(world.environment.table(signal)),
  connect: world.connecting({ kubernetes: connected(), probe: async () => READY }),
});

beforeEach(async () => {
  world = aDispatchWorld();
  cluster = world.cluster();
  ranges = [];
  whileReading = undefined;
  await world.register(SPEC);
  await claimCluster(world.table, 'demo', 'prod');
});

test.each(LOOPS.flatMap((loop) => CHANGES.map(([what, change]) => ({ id: loop.id, loop, what, change }))))(
  'a running pass of $id writes neither to the cluster nor to a range after $what',
  async ({ loop, change }) => {
    whileReading = () => change(world.table, pause());
    const summary = await world.dispatch(loop, world.schedule(), { environment: environment() });
    expect([cluster.writes, ranges]).toEqual([[], []]);
    expect(summary).toMatchObject({ passes: 1, failed: 1 });
    expect(await world.recordOf('demo', loop.id)).toMatchObject({ error: { code: 'OlderSpec' } });
  },
);
