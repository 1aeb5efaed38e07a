import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { addressRange, nodePortRange } from '../../lib/range/configured-range.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { CLUSTER } from './kbctl-world.ts';
import { seededPick } from './ranges.ts';

/** Returns the allocations of the primary range of a cluster, as it is registered now. */
export async function addressesOf(table: KeyValueTable, cluster = CLUSTER): Promise<RangeAllocations<string>> {
  const range = addressRange(await registered(table, cluster), RANGE_KEYS.primary, seededPick(1));
  if (range === undefined) throw new Error('expected a primary range');
  return rangeAllocations(table, range);
}

export async function portsOf(table: KeyValueTable): Promise<RangeAllocations<number>> {
  return rangeAllocations(table, nodePortRange(await registered(table, CLUSTER), seededPick(1)));
}

async function registered(table: KeyValueTable, name: string): Promise<RegisteredCluster> {
  const cluster = await readCluster(table, name);
  if (cluster === undefined) throw new Error(`expected ${name} to be registered`);
  return cluster;
}
