import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { CLUSTER } from './kbctl-world.ts';
import { ipRange, portRange } from './ranges.ts';

/** The addresses of the world's cluster, as somebody has them who reads its registration now. */
export async function addressesOf(table: KeyValueTable): Promise<RangeAllocations<string>> {
  const { rangesGeneration, cidr } = await rangesOf(table);
  const range = { cluster: CLUSTER, key: RANGE_KEYS.primary, allocator: 'table', rangesGeneration } as const;
  return rangeAllocations(table, { ...range, emptyAllocator: () => ipRange(cidr) });
}

export async function portsOf(table: KeyValueTable): Promise<RangeAllocations<number>> {
  const { rangesGeneration, ports } = await rangesOf(table);
  const range = { cluster: CLUSTER, key: RANGE_KEYS.nodePorts, allocator: 'table', rangesGeneration } as const;
  return rangeAllocations(table, { ...range, emptyAllocator: () => portRange(ports) });
}

async function rangesOf(table: KeyValueTable) {
  const cluster = await readCluster(table, CLUSTER);
  if (cluster === undefined) throw new Error(`expected ${CLUSTER} to be registered`);
  const { spec, rangesGeneration } = cluster;
  return { rangesGeneration, cidr: spec.serviceClusterIPRanges[0], ports: spec.serviceNodePortRange };
}
