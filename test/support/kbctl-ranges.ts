import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { addressRange, nodePortRange } from '../../lib/range/configured-range.ts';
import { type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { CLUSTER } from './kbctl-world.ts';
import { allocationsOf, type SingleAllocations, seededPick } from './ranges.ts';

/** The addresses of the world's cluster, by its registration as it is now. */
export async function addressesOf(table: KeyValueTable): Promise<SingleAllocations<string>> {
  const range = addressRange(await registered(table), RANGE_KEYS.primary, seededPick(1));
  if (range === undefined) throw new Error('expected a primary range');
  return allocationsOf(table, range);
}

export async function portsOf(table: KeyValueTable): Promise<SingleAllocations<number>> {
  return allocationsOf(table, nodePortRange(await registered(table), seededPick(1)));
}

async function registered(table: KeyValueTable): Promise<RegisteredCluster> {
  const cluster = await readCluster(table, CLUSTER);
  if (cluster === undefined) throw new Error(`expected ${CLUSTER} to be registered`);
  return cluster;
}
