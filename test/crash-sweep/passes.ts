import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { KUBERNETES_SERVICE, type ServiceObject } from '../../lib/cluster/published-objects.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { aHost, type SpecFields, serversAt } from '../support/a-cluster-spec.ts';
import { anEndpoints } from '../support/an-endpoints.ts';
import { turnHooksOff } from '../support/memory-cluster.ts';
import { A, B, C, READY, SHUTTING_DOWN, SILENT } from '../support/pass-world.ts';
import { withdraw } from '../support/put-lease.ts';
import { stockCidr, stockRecord, stockService } from '../support/stock-objects.ts';
import { CLUSTER, endpointsWorld, LoopWorld, settledWorld } from './loop-world.ts';
import type { Subject } from './sweep.ts';

/* The passes of the four loops, each in the worlds in which it makes the most calls. */

/** Returns a subject that runs a pass, repeats it at the same time, and then runs four passes at the interval of the loop. */
function pass(loop: LoopDefinition, what: string, world: () => Promise<LoopWorld>): Subject<LoopWorld> {
  return {
    what: `${loop.id}: ${what}`,
    world,
    run: (started, calls) => started.invoke(loop, calls),
    state: async (started) => {
      const atOnce = await started.state();
      await started.later(loop, 4);
      return { atOnce, later: await started.state() };
    },
  };
}

const namespaces = [pass(systemNamespaces, 'an empty cluster', () => new LoopWorld().registerClaimed())];

/** The Service of a cluster whose port differs from that of the spec. */
const ANOTHER_PORT: ServiceObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { ...KUBERNETES_SERVICE },
  spec: { type: 'ClusterIP', clusterIP: '10.0.0.1', ports: [{ name: 'https', port: 8443, protocol: 'TCP' }] },
};

async function hooksOff(): Promise<LoopWorld> {
  const world = await endpointsWorld([A, B]);
  turnHooksOff(world.cluster);
  return world;
}

const endpoints: readonly Subject<LoopWorld>[] = [
  pass(kubernetesService, 'an empty cluster', () => endpointsWorld([A, B, C])),
  pass(kubernetesService, 'an API server that does not create its own objects', hooksOff),
  pass(kubernetesService, 'the addresses of another writer', () => endpointsWorld([A, B], {}, [anEndpoints([C])])),
  pass(kubernetesService, 'a published address that has no lease and does not answer', async () =>
    (await endpointsWorld([A, B, C], {}, [anEndpoints([A, B, C])])).answer(SILENT, C),
  ),
  pass(kubernetesService, 'a Service that the spec corrects', () =>
    endpointsWorld([A], { service: { reconcile: true } }, [ANOTHER_PORT]),
  ),
  pass(kubernetesService, 'a first missed probe', async () => (await settledWorld(A, B, C)).answer(SILENT, B)),
  pass(kubernetesService, 'the second missed probe of an expired lease', async () => {
    const world = (await settledWorld(A, B, C)).answer(SILENT, B);
    return world.untilNext(kubernetesService, 2);
  }),
  pass(kubernetesService, 'a server that shuts down', async () =>
    (await settledWorld(A, B, C)).answer(SHUTTING_DOWN, B),
  ),
  pass(kubernetesService, 'no API server answers', async () => (await settledWorld(A, B, C)).answer(SILENT, A, B, C)),
  pass(kubernetesService, 'a server that answers again', async () => {
    const world = (await settledWorld(A, B, C)).answer(SILENT, B);
    await world.later(kubernetesService, 4);
    return world.answer(READY, B);
  }),
  {
    ...pass(kubernetesService, 'a withdrawal that no pass has seen', async () => {
      const world = await settledWorld(A, B, C);
      const nowMs = world.nowMs;
      await withdraw(world.table, CLUSTER, { address: B, untilMs: nowMs + 3_600_000, nowMs });
      return world;
    }),
    mayDiffer: {
      at: new RegExp(`^probe https://${B}:`),
      ends: ['failedBefore', 'failedAfter'],
      why: 'a withdrawn server whose probe gets no answer counts as down, and its next answer ends the withdrawal',
    },
  },
  pass(kubernetesService, 'a spec with another server', async () => {
    const world = await settledWorld(A, B);
    return world.answer(READY, C).register({ apiServers: serversAt(A, C) });
  }),
  pass(kubernetesService, 'a lease of an address that is not in the spec', async () => {
    const world = await settledWorld(A, B);
    await world.setLease({ address: C, expiresAtMs: world.nowMs - 60_000, misses: 2 });
    return world;
  }),
  pass(kubernetesService, 'a host name whose record changed', async () => {
    const world = await new LoopWorld().answer(READY, A, B).register({ apiServers: [aHost('api.example')] });
    world.records.set('api.example', [A]);
    await world.later(kubernetesService, 2);
    world.records.set('api.example', [B]);
    return world;
  }),
  pass(kubernetesService, 'a master count', () =>
    endpointsWorld([A, B], { endpoints: { reconciler: 'master-count', masterCount: 2 } }, [anEndpoints([A, C])]),
  ),
  pass(kubernetesService, 'no reconciler', () => endpointsWorld([A], { endpoints: { reconciler: 'none' } })),
  pass(kubernetesService, 'mode observe', () => endpointsWorld([A, B], { mode: 'observe' })),
];

const RANGES: SpecFields = {
  serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'],
  serviceNodePortRange: '30000-30127',
};

interface RepairWorld {
  readonly services: readonly ServiceClaim[];
  readonly stored?: Partial<Record<RangeKey, Partial<StoredRange> & Pick<StoredRange, 'range' | 'data'>>>;
  readonly spec?: SpecFields;
}

async function repairWorld({ services, stored = {}, spec = {} }: RepairWorld): Promise<LoopWorld> {
  const world = await new LoopWorld().list(...services).registerClaimed({ allocator: 'table', ...RANGES, ...spec });
  for (const [key, range] of Object.entries(stored)) await world.store(key as RangeKey, range);
  return world;
}

const SERVICES = [withAddresses('a', '10.0.0.5', 'fd00::5'), withAddresses('b', '10.0.0.6', 'fd00::6')];
const PORTS = [withNodePorts('a', 30_004), withNodePorts('b', 30_005)];
const [V4, V6, NODE_PORTS] = [
  { range: '10.0.0.0/24', data: fromBits([4, 8, 9]) },
  { range: 'fd00::/112', data: fromBits([4, 8, 9]) },
  { range: '30000-30127', data: fromBits([4, 8, 9]) },
];
const TWICE = { once: fromBits([9]), twice: fromBits([8]) };
const all = (fields: Partial<StoredRange>) => ({
  [RANGE_KEYS.primary]: { ...V4, ...fields },
  [RANGE_KEYS.secondary]: { ...V6, ...fields },
  [RANGE_KEYS.nodePorts]: { ...NODE_PORTS, ...fields },
});
const ENDED_MS = Date.parse('2026-01-01T11:00:00Z');
const ended = (items: readonly string[]) =>
  ({ holds: [{ items, owner: 'team-a', takenUpBy: 'any', untilMs: ENDED_MS }] }) as const;

/** Makes another writer allocate for a new Service once, while the pass lists the Services. */
async function allocatedMeanwhile(world: LoopWorld, key: RangeKey, service: ServiceClaim): Promise<LoopWorld> {
  let isFirst = true;
  world.whileListing = async () => {
    if (!isFirst) return;
    isFirst = false;
    const stored = await world.stored(key);
    if (stored === undefined) return;
    await world.store(key, { ...stored, data: fromBits([4, 8, 9, 20]) });
    world.list(...(world.services ?? []), service);
  };
  return world;
}

const repairs = [
  [clusterIpRepair, RANGE_KEYS.primary, SERVICES, withAddresses('c', '10.0.0.21')] as const,
  [nodePortRepair, RANGE_KEYS.nodePorts, PORTS, withNodePorts('c', 30_020)] as const,
].flatMap(([loop, key, services, arriving]): Subject<LoopWorld>[] => [
  pass(loop, 'an empty table', () => repairWorld({ services })),
  pass(loop, 'two Services with one claim', () =>
    repairWorld({ services: services.flatMap((each) => [each, { ...each, name: `${each.name}-2` }]) }),
  ),
  {
    ...pass(loop, 'leaks, one of them with two strikes', () =>
      repairWorld({ services, stored: all({ strikes: TWICE }) }),
    ),
    mayDiffer: {
      at: /^confirm the control plane$/,
      ends: ['failedBefore', 'failedAfter'],
      why: 'a pass that cannot confirm its control plane frees nothing: the pass of the next interval does',
    },
  },
  pass(loop, 'a hold that has ended', () =>
    repairWorld({
      services,
      stored: {
        [RANGE_KEYS.primary]: { ...V4, ...ended(['10.0.0.9', '10.0.0.5']) },
        [RANGE_KEYS.nodePorts]: { ...NODE_PORTS, ...ended(['30008', '30004']) },
      },
    }),
  ),
  pass(loop, 'a range of an older generation', () => repairWorld({ services, stored: all({ generation: 0 }) })),
  pass(loop, 'an allocation while the pass lists the Services', async () =>
    allocatedMeanwhile(await repairWorld({ services, stored: all({}) }), key, arriving),
  ),
  pass(loop, 'a cluster whose API servers allocate', () => repairWorld({ services, spec: { allocator: 'apiserver' } })),
  pass(loop, 'mode observe', () => repairWorld({ services, stored: all({}), spec: { mode: 'observe' } })),
]);

/** Returns a cluster whose API servers allocate, in which another client damaged the IPAddresses, after some passes. */
async function stockWorld(passes: number, spec: SpecFields = {}): Promise<LoopWorld> {
  const names = Object.entries({ missing: '10.0.0.5', wrong: '10.0.0.6', unlabelled: '10.0.0.7', right: 'fd00::8' });
  const unlabelled = stockRecord('10.0.0.7', 'a/unlabelled');
  const hold = ipAddressOfHold('10.0.0.10', { owner: 'team-a', takenUpBy: 'any', untilMs: ENDED_MS });
  const world = new LoopWorld(
    [
      stockCidr('10.0.0.0/24', 'fd00::/112'),
      ...names.map(([name, address]) => stockService(name, address)),
      stockRecord('10.0.0.6', 'a/gone'),
      { ...unlabelled, metadata: { name: '10.0.0.7' } },
      stockRecord('fd00::8', 'a/right'),
      stockRecord('10.0.0.9', 'a/gone'),
      stockRecord('fd00::9', 'a/right'),
      hold,
    ].map((object) => ({ ...object, metadata: { ...object.metadata, creationTimestamp: '2026-01-01T00:00:00Z' } })),
  );
  await world.registerClaimed({ allocator: 'apiserver', repair: { ipAddresses: true }, ...RANGES, ...spec });
  return world.untilNext(clusterIpRepair, passes);
}

const stock: readonly Subject<LoopWorld>[] = [
  pass(clusterIpRepair, 'damaged IPAddresses', () => stockWorld(0)),
  pass(clusterIpRepair, 'IPAddresses that leaked, which a pass has seen before', () => stockWorld(1)),
  pass(clusterIpRepair, 'damaged IPAddresses, which are only reported', () =>
    stockWorld(1, { repair: { ipAddresses: false } }),
  ),
];

/**
 * The scheduled invocation of a minute, which claims the clusters and queues their ticks. After it, the scheduled invocation of
 * the next minute runs.
 */
const minute: Subject<LoopWorld> = {
  what: 'the scheduled invocation of a minute',
  world: async () => (await endpointsWorld([A, B])).register({ name: 'other', endpoints: { reconciler: 'none' } }),
  run: (world, calls) => world.invoke(kubernetesService, calls, world.schedule()),
  again: async (world) => {
    world.nowMs += 60_000;
    await world.invoke(kubernetesService, undefined, world.schedule());
    // The tick of a cluster whose last pass got no answer is in the queue.
    for (const event of world.queue.receive()) await world.invoke(kubernetesService, undefined, event);
  },
  // Messages are not compared: if the scheduled invocation is cut, the ticks of its minute are lost, or are in the queue twice.
  state: async (world) => ({ ...(await world.state()), messages: 'of two minutes' }),
};

export const PASSES: readonly Subject<LoopWorld>[] = [...namespaces, ...endpoints, ...repairs, ...stock, minute];
