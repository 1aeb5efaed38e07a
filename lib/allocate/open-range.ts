import type { PickIndex } from '../allocator/range-allocator.ts';
import { type Refusal, refused } from '../allocator/refusal.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { addressRange, type ConfiguredRange, nodePortRange } from '../range/configured-range.ts';
import { callerRefusal } from '../runtime/caller-keys.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type RangeAllocations, type RangeOptions, rangeAllocations } from '../table/range-allocations.ts';
import type { AllocateRequest, ItemValue, RangeName } from './request.ts';

/**
 * Returns the cluster of a request, or why this function refuses it.
 * @throws TableError
 */
export async function openRequestedCluster(
  table: KeyValueTable,
  { cluster: name, operation, callerKey }: AllocateRequest,
  stack: string | undefined,
): Promise<RegisteredCluster | Refusal> {
  const cluster = await readCluster(table, name);
  if (cluster === undefined) return refused('NotRegistered', `cluster ${name} is not registered`);
  const { spec } = cluster;
  const message = callerRefusal(spec, callerKey, stack);
  if (message !== undefined) return refused('CallerRefused', message);
  if (operation === 'lookUp') return cluster;
  const owner = otherOwner(cluster, stack);
  if (owner !== undefined) {
    const other = `cluster ${name} belongs to the stack ${owner}: invoke the allocate function of that stack`;
    return refused('OtherStack', other);
  }
  return cluster;
}

/**
 * Returns the reason why requests of a cluster cannot change anything now. Completed requests still get their answers.
 */
export function observeOnly({ name, mode }: ClusterSpec): Refusal | undefined {
  if (mode !== 'observe') return undefined;
  const message = `cluster ${name} has "mode: observe": nothing is allocated or released until its spec has "mode: enforce"`;
  return refused('ObserveOnly', message);
}

/** A range of a cluster. Items were checked: ports are numbers, and addresses texts. */
export type OpenRange = Pick<RangeAllocations<ItemValue>, 'allocate' | 'release' | 'heldBy' | 'lookUp' | 'itemOf'>;

export interface OpenRangeOptions {
  readonly pick: PickIndex;
  readonly update: RangeOptions;
}

export function keyOf<Name extends RangeName>(name: Name): `ranges/${Name}` {
  return `ranges/${name}`;
}

/** Opens a range that the cluster has. */
export function openRange(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  name: RangeName,
  { pick, update }: OpenRangeOptions,
): OpenRange {
  const range = name === 'servicenodeports' ? nodePortRange(cluster, pick) : addressRange(cluster, keyOf(name), pick);
  return rangeAllocations(table, range as unknown as ConfiguredRange<ItemValue>, update);
}

/** Returns why a request for a second range is refused. */
export function noSecondaryRange({ name, serviceClusterIPRanges: [range, second] }: ClusterSpec): Refusal | undefined {
  if (second !== undefined) return undefined;
  const message = `cluster ${name} has one range of cluster IPs, ${range}: it has no secondaryserviceips`;
  return refused('NoSecondaryRange', message);
}

export function notSupported(cluster: string): Refusal {
  const message = `cluster ${cluster} has "allocator: apiserver": its API servers allocate, and nothing is held for them`;
  return refused('NotSupported', message);
}
