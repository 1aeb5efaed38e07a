import type { Loop } from '../spec/cluster-spec.ts';
import { type ClusterList, clusterPages, type ListedCluster, type Pause } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';

export type ClusterSummary = Readonly<ReturnType<typeof clusterSummary>>;

export interface ShortClusterList {
  /** The clusters in byte order of their names. */
  readonly entries: readonly ClusterSummary[];
  readonly unreadable: ClusterList['unreadable'];
  readonly pausedAll: Pause | undefined;
}

/** The time between two pages. A page costs 256 of the 3,000 reads that the partition serves per second. */
const PAGE_EVERY_MS = 250;
/** The delay before the second page. It differs by loop, because all scheduled functions begin in the same second. */
const SECOND_PAGE_MS: Readonly<Record<Loop, number>> = {
  'kubernetes-service': PAGE_EVERY_MS,
  'system-namespaces': 3_000,
  'cluster-ip-repair': 6_000,
  'node-port-repair': 9_000,
};

/** Returns the sum of the pauses between pages when a loop lists a large fleet. The time of the calls is not included. */
export function listPausesMs(loop: Loop): number {
  return SECOND_PAGE_MS[loop] + 3_000;
}

/** Reads all registrations page by page, with waits between pages. Returns a summary of each. */
export async function readClusterList(
  table: KeyValueTable,
  loop: Loop,
  wait: (ms: number) => Promise<void>,
): Promise<ShortClusterList> {
  const entries: ClusterSummary[] = [];
  const unreadable: ClusterList['unreadable'][number][] = [];
  let pausedAll: Pause | undefined;
  let pages = 1;
  const beforeNext = () => wait(pages++ === 1 ? SECOND_PAGE_MS[loop] : PAGE_EVERY_MS);
  for await (const page of clusterPages(table, beforeNext)) {
    pausedAll ??= page.pausedAll;
    unreadable.push(...page.unreadable);
    entries.push(...page.clusters.map(clusterSummary));
  }
  return { entries, unreadable, pausedAll };
}

/** Returns the fields that ticks and figures need. Only these stay in memory, because a fleet may be large. */
export function clusterSummary({ spec, paused, owner, writtenAtMs }: ListedCluster) {
  const { name, intervalSeconds, endpoints } = spec;
  return { name, intervalSeconds, publishes: endpoints.reconciler !== 'none', paused, owner, writtenAtMs };
}
