import type { PickIndex } from '../allocator/range-allocator.ts';
import { type Refusal, refused } from '../allocator/refusal.ts';
import { callerRefusal } from '../runtime/caller-keys.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import {
  configuredRange,
  type RangeAllocations,
  type RangeOptions,
  rangeAllocations,
} from '../table/range-allocations.ts';
import type { AllocateRequest, RangeName } from './request.ts';

/** Returns the cluster of a request, or a refusal if the cluster does not accept the request. @throws TableError */
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

/** Returns a refusal if the mode of a cluster is `observe`. A repetition of a completed request still gets its saved answer. */
export function observeOnly({ name, mode }: ClusterSpec): Refusal | undefined {
  if (mode !== 'observe') return undefined;
  const message = `cluster ${name} has "mode: observe": nothing is allocated or released until its spec has "mode: enforce"`;
  return refused('ObserveOnly', message);
}

/** A range of a cluster. It is stored either in the table, or as IPAddresses in the cluster's API servers. */
export type OpenRange = Pick<RangeAllocations, 'allocate' | 'release' | 'heldBy' | 'lookUp'>;

export interface OpenRangeOptions {
  readonly pick: PickIndex;
  readonly update: RangeOptions;
}

export function openRange(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  name: RangeName,
  { pick, update }: OpenRangeOptions,
): OpenRange | Refusal {
  const range = configuredRange(cluster, `ranges/${name}`, pick);
  const { name: ofCluster, serviceClusterIPRanges } = cluster.spec;
  if (range === undefined) return noSecondaryRange(ofCluster, serviceClusterIPRanges[0]);
  return rangeAllocations(table, range, update);
}

export function noSecondaryRange(cluster: string, range: string): Refusal {
  const message = `cluster ${cluster} has one range of cluster IPs, ${range}: it has no secondaryserviceips`;
  return refused('NoSecondaryRange', message);
}

/** Returns a refusal if a cluster with `allocator: apiserver` cannot serve the request. `connects`: this process can call it. */
export function needsTable({ cluster, items, hold, takeUp }: AllocateRequest, connects: boolean): Refusal | undefined {
  if (items.some(({ range }) => range === 'servicenodeports')) {
    return notSupported(cluster, 'no object can hold a node port, only cluster IPs can be held');
  }
  if (takeUp !== undefined || hold?.takenUpBy === 'owner') {
    return notSupported(cluster, 'no Service can claim a hold, release it right before you create the Service');
  }
  if (connects) return undefined;
  return notSupported(cluster, 'this function connects to no cluster, hold cluster IPs with "kbctl allocate ip"');
}

export function notSupported(cluster: string, why: string): Refusal {
  return refused('NotSupported', `cluster ${cluster} has "allocator: apiserver": ${why}`);
}
