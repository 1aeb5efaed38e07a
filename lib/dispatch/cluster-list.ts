import type { Loop } from '../cluster/cluster-spec.ts';
import { type ClusterList, clusterPages, type ListedCluster, type Owner, type Pause } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';

/** A registered cluster, as far as it concerns whoever hands out ticks: thousands of these are in memory at once. */
export interface ClusterSummary {
  readonly name: string;
  readonly intervalSeconds: Readonly<Record<Loop, number>>;
  readonly publishes: boolean;
  readonly paused: Pause | undefined;
  readonly owner: Owner | undefined;
  readonly writtenAtMs: number;
}

export interface ShortClusterList {
  /** In byte order of names. */
  readonly entries: readonly ClusterSummary[];
  readonly unreadable: ClusterList['unreadable'];
  readonly pausedAll: Pause | undefined;
  /** The whole registrations by name, of the first ones alone. */
  readonly clusters: ReadonlyMap<string, ListedCluster>;
}

/** Reads all registrations page by page and keeps `whole` of them as they are. Throws as `clusterPages` does. */
export async function readClusterList(table: KeyValueTable, whole: number): Promise<ShortClusterList> {
  const entries: ClusterSummary[] = [];
  const unreadable: ClusterList['unreadable'][number][] = [];
  const kept = new Map<string, ListedCluster>();
  let pausedAll: Pause | undefined;
  for await (const page of clusterPages(table)) {
    pausedAll ??= page.pausedAll;
    unreadable.push(...page.unreadable);
    for (const cluster of page.clusters) {
      if (kept.size < whole) kept.set(cluster.spec.name, cluster);
      entries.push(clusterSummary(cluster));
    }
  }
  return { entries, unreadable, pausedAll, clusters: kept };
}

export function clusterSummary({ spec, paused, owner, writtenAtMs }: ListedCluster): ClusterSummary {
  const { name, intervalSeconds, endpoints } = spec;
  return { name, intervalSeconds, publishes: endpoints.reconciler !== 'none', paused, owner, writtenAtMs };
}
