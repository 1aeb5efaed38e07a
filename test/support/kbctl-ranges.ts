import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { addressRange, nodePortRange } from '../../lib/range/configured-range.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { found } from './found.ts';
import { CLUSTER } from './kbctl-world.ts';
import { seededPick } from './ranges.ts';

/** Returns the allocations of the primary range of a cluster, as it is registered now. */
export async function addressesOf(table: KeyValueTable, cluster = CLUSTER): Promise<RangeAllocations<string>> {
  const registered = found(await readCluster(table, cluster));
  return rangeAllocations(table, found(addressRange(registered, RANGE_KEYS.primary, seededPick(1))));
}

export async function portsOf(table: KeyValueTable): Promise<RangeAllocations<number>> {
  return rangeAllocations(table, nodePortRange(found(await readCluster(table, CLUSTER)), seededPick(1)));
}
