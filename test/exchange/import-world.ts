import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import type { ExportedRange } from '../../lib/exchange/cluster-ranges.ts';
import type { ExchangeFile } from '../../lib/exchange/exchange-file.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition, PassReport } from '../../lib/loops/pass.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { listing } from '../repair/repair-cluster.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { aPassContext } from '../support/pass-context.ts';
import { allocationsOf, made, pickLowest, type SingleAllocations } from '../support/ranges.ts';

export const CLUSTER = 'demo';
export const NOW_MS = 1_000_000_000;

/** A cluster whose table allocates, with little room, so that each item is easily tried. */
export const SPEC: Partial<ClusterSpec> = {
  name: CLUSTER,
  allocator: 'table',
  serviceClusterIPRanges: ['10.0.0.0/28'],
  serviceNodePortRange: '30000-30015',
};

let passes = 0;

export async function register(table: KeyValueTable, spec: Partial<ClusterSpec> = SPEC): Promise<RegisteredCluster> {
  return registerCluster(table, aClusterSpec(spec), AT_ONCE);
}

export async function registered(table: KeyValueTable): Promise<RegisteredCluster> {
  const cluster = await readCluster(table, CLUSTER);
  if (cluster === undefined) throw new Error('expected a registration');
  return cluster;
}

/** One pass of both repair loops by a function that has read this registration. */
export async function pass(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  services: readonly ServiceClaim[] = [],
): Promise<readonly PassReport[]> {
  return [
    await passOf(clusterIpRepair, table, cluster, services),
    await passOf(nodePortRepair, table, cluster, services),
  ];
}

export function passOf(
  loop: LoopDefinition,
  table: KeyValueTable,
  { spec, rangesGeneration }: RegisteredCluster,
  services: readonly ServiceClaim[],
): Promise<PassReport> {
  passes += 1;
  return loop.run(
    aPassContext({
      kubernetes: listing(() => services),
      spec,
      rangesGeneration,
      table,
      passId: `pass-${passes}`,
      nowMs: () => NOW_MS,
    }),
  );
}

/** What a function with this registration allocates from. */
export function addressesOf(
  table: KeyValueTable,
  { spec, rangesGeneration }: RegisteredCluster,
): SingleAllocations<string> {
  return allocationsOf(
    table,
    {
      cluster: CLUSTER,
      key: RANGE_KEYS.primary,
      allocator: spec.allocator,
      rangesGeneration,
      emptyAllocator: () => made(ipRangeOf(spec.serviceClusterIPRanges[0], pickLowest)),
    },
    AT_ONCE,
  );
}

export function portsOf(
  table: KeyValueTable,
  { spec, rangesGeneration }: RegisteredCluster,
): SingleAllocations<number> {
  return allocationsOf(
    table,
    {
      cluster: CLUSTER,
      key: RANGE_KEYS.nodePorts,
      allocator: spec.allocator,
      rangesGeneration,
      emptyAllocator: () => made(portRangeOf(spec.serviceNodePortRange, pickLowest)),
    },
    AT_ONCE,
  );
}

/** All that can still be had. */
export async function allOf<Item>(allocations: SingleAllocations<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for (let next = await allocations.allocateNext(); 'item' in next; next = await allocations.allocateNext()) {
    items.push(next.item);
  }
  return items;
}

/** `open`, or why not. */
export async function stateOf(allocations: SingleAllocations<string> | SingleAllocations<number>): Promise<string> {
  const next = await allocations.allocateNext();
  if (!(next instanceof AllocatorError)) return 'open';
  if (next.code !== 'NotReady') throw next;
  return next.message.includes('read the spec again') ? 'older' : 'closed';
}

/** Addresses .6 to .8 and ports 30005 to 30007, of which the first of each is held. */
export const TAKEN = { addresses: ['10.0.0.6', '10.0.0.7', '10.0.0.8'], ports: [30005, 30006, 30007] };

export function fileOf(ranges: readonly Partial<ExportedRange>[] = [{}, { key: RANGE_KEYS.nodePorts }]): ExchangeFile {
  const bits = fromBits([5, 6, 7]);
  const clusterRanges = {
    cluster: CLUSTER,
    exportedAtMs: NOW_MS,
    generation: 1,
    ranges: ranges.map((fields): ExportedRange => {
      const key = fields.key ?? RANGE_KEYS.primary;
      const [range, item] = key === RANGE_KEYS.nodePorts ? ['30000-30015', '30005'] : ['10.0.0.0/28', '10.0.0.6'];
      const holds = [{ items: [item], owner: 'ci', takenUpBy: 'any' as const }];
      return { key, range, allocator: 'table', data: bits, holds, ...fields };
    }),
  };
  return { kind: 'ClusterRanges', clusterRanges };
}
