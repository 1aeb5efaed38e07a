import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import {
  ALL_CLUSTERS,
  CLUSTERS,
  clusterContent,
  decodeRegistration,
  type Pause,
  pauseContent,
  type RegisteredCluster,
  specValue,
  tombstoneContent,
} from './clusters.ts';
import { guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import type { KeyValueTable } from './key-value-table.ts';
import { sameValue } from './values.ts';

/**
 * Makes the registration what the spec says: the same spec again writes nothing, another one is a new generation.
 * Generations go on where an earlier registration of the name ended, or ranges that it saved would pass for newer.
 * @returns the cluster as it is now registered.
 */
export function registerCluster(
  table: KeyValueTable,
  spec: ClusterSpec,
  options?: UpdateOptions,
): Promise<RegisteredCluster> {
  return guaranteedUpdate(
    table,
    CLUSTERS,
    spec.name,
    (current) => {
      const known = current && decodeRegistration(current);
      const before = known?.cluster;
      if (before !== undefined && sameSpec(before.spec, spec)) return { keep: before };
      const generation = (known?.generation ?? 0) + 1;
      const sameRanges = before !== undefined && sameRangesIn(before.spec, spec);
      const cluster: RegisteredCluster = {
        spec,
        generation,
        rangesGeneration: sameRanges ? before.rangesGeneration : generation,
        ...(before?.paused !== undefined && { paused: before.paused }),
      };
      return { write: clusterContent(cluster), result: cluster };
    },
    options,
  );
}

/**
 * Ends the passes of a cluster. Nothing is changed in the cluster itself, and its ranges, leases and run records stay in
 * the table. @returns whether it was registered.
 */
export function unregisterCluster(table: KeyValueTable, name: string, options?: UpdateOptions): Promise<boolean> {
  return guaranteedUpdate(
    table,
    CLUSTERS,
    name,
    (current) => {
      const known = current && decodeRegistration(current);
      if (known?.cluster === undefined) return { keep: false };
      return { write: tombstoneContent(known.generation), result: true };
    },
    options,
  );
}

/** Holds one cluster's passes, or with `undefined` lets them go on. @returns whether the cluster is registered. */
export function pauseCluster(
  table: KeyValueTable,
  name: string,
  pause: Pause | undefined,
  options?: UpdateOptions,
): Promise<boolean> {
  return guaranteedUpdate(
    table,
    CLUSTERS,
    name,
    (current) => {
      const known = current && decodeRegistration(current).cluster;
      if (known === undefined) return { keep: false };
      const { paused: _, ...cluster } = known;
      return { write: clusterContent({ ...cluster, ...(pause !== undefined && { paused: pause }) }), result: true };
    },
    options,
  );
}

/** Holds the passes of all clusters, or with `undefined` lets them go on; the hold on a single one is another matter. */
export async function pauseAllClusters(
  table: KeyValueTable,
  pause: Pause | undefined,
  options?: UpdateOptions,
): Promise<void> {
  await guaranteedUpdate(
    table,
    CLUSTERS,
    ALL_CLUSTERS,
    () => ({ write: pauseContent(pause), result: undefined }),
    options,
  );
}

function sameSpec(one: ClusterSpec, other: ClusterSpec): boolean {
  return sameValue(specValue(one), specValue(other));
}

function sameRangesIn(one: ClusterSpec, other: ClusterSpec): boolean {
  const [primary, secondary] = one.serviceClusterIPRanges;
  const [otherPrimary, otherSecondary] = other.serviceClusterIPRanges;
  return (
    primary === otherPrimary &&
    secondary === otherSecondary &&
    one.serviceNodePortRange === other.serviceNodePortRange &&
    one.allocator === other.allocator
  );
}
