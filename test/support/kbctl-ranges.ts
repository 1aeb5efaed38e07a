import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { configuredRange, type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { found } from './found.ts';
import { CLUSTER } from './kbctl-world.ts';
import { seededPick } from './ranges.ts';

/** Returns the allocations of the primary range of a cluster, as it is registered now. */
export function addressesOf(table: KeyValueTable, cluster = CLUSTER): Promise<RangeAllocations> {
  return allocationsOf(table, cluster, RANGE_KEYS.primary);
}

export function portsOf(table: KeyValueTable): Promise<RangeAllocations> {
  return allocationsOf(table, CLUSTER, RANGE_KEYS.nodePorts);
}

async function allocationsOf(table: KeyValueTable, cluster: string, key: RangeKey): Promise<RangeAllocations> {
  const registered = found(await readCluster(table, cluster));
  return rangeAllocations(table, found(configuredRange(registered, key, seededPick(1))));
}
