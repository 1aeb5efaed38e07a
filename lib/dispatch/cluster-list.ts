import type { Loop } from '../cluster/cluster-spec.ts';
import { type ClusterList, clusterPages, type ListedCluster, type Owner, type Pause } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';

/** What ticks and figures need to know of a registered cluster: thousands of these are in memory at once. */
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
}

/** Registrations are a few KB each. */
const MOST_REGISTRATIONS = 10_000;
/** An older list differs too much from what is registered now. */
const OLDEST_LIST_MS = 15 * 60_000;

/** What a process remembers of clusters from one invocation to the next. */
export class ClusterMemory {
  readonly #registrations = new Map<string, ListedCluster>();
  #last: { readonly list: ShortClusterList; readonly readAtMs: number } | undefined;

  /** Returns the registration that was written at that time, if this process has read it. */
  registration(name: string, writtenAtMs: number | undefined): ListedCluster | undefined {
    const known = this.#registrations.get(name);
    return known?.writtenAtMs === writtenAtMs ? known : undefined;
  }

  keep(cluster: ListedCluster): void {
    const { name } = cluster.spec;
    this.#registrations.delete(name);
    this.#registrations.set(name, cluster);
    const [oldest] = this.#registrations.keys();
    if (this.#registrations.size > MOST_REGISTRATIONS && oldest !== undefined) this.#registrations.delete(oldest);
  }

  keepList(list: ShortClusterList, readAtMs: number): void {
    this.#last = { list, readAtMs };
  }

  /** Returns the last list that was read and its age, unless it is too old. */
  lastList(nowMs: number): { readonly list: ShortClusterList; readonly ageMs: number } | undefined {
    if (this.#last === undefined) return undefined;
    const ageMs = nowMs - this.#last.readAtMs;
    return ageMs > OLDEST_LIST_MS ? undefined : { list: this.#last.list, ageMs };
  }
}

/** Reads all registrations page by page; `memory` keeps the first `whole` of them. Throws as `clusterPages` does. */
export async function readClusterList(
  table: KeyValueTable,
  memory: ClusterMemory,
  whole: number,
): Promise<ShortClusterList> {
  const entries: ClusterSummary[] = [];
  const unreadable: ClusterList['unreadable'][number][] = [];
  let pausedAll: Pause | undefined;
  for await (const page of clusterPages(table)) {
    pausedAll ??= page.pausedAll;
    unreadable.push(...page.unreadable);
    for (const cluster of page.clusters) {
      if (entries.length < whole) memory.keep(cluster);
      entries.push(clusterSummary(cluster));
    }
  }
  return { entries, unreadable, pausedAll };
}

export function clusterSummary({ spec, paused, owner, writtenAtMs }: ListedCluster): ClusterSummary {
  const { name, intervalSeconds, endpoints } = spec;
  return { name, intervalSeconds, publishes: endpoints.reconciler !== 'none', paused, owner, writtenAtMs };
}
