import type { Lease } from '../../lib/leases/lease.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import type { ListedCluster, Pause } from '../../lib/table/clusters.ts';
import { type Item, type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { decodeLeases, LEASES } from '../../lib/table/leases.ts';
import { decodeRange } from '../../lib/table/ranges.ts';
import { decodeRunRecord, type RunRecords, runKey } from '../../lib/table/run-records.ts';
import { eachOf } from '../../lib/util/async.ts';

export interface StatusInputs {
  readonly cluster: ListedCluster;
  readonly pausedAll: Pause | undefined;
  readonly leases: readonly Lease[];
  readonly records: RunRecords;
  readonly ranges?: readonly SavedRange[];
  readonly unreadable: readonly UnreadableItem[];
}

export interface SavedRange {
  readonly key: RangeKey;
  readonly stored: StoredRange;
  readonly savedAtMs: number;
}

export interface UnreadableItem {
  /** The key of the unreadable item. Empty if the item made a list fail, and its key was not found. */
  readonly key: string;
  readonly message: string;
}

/** The number of clusters that are read at once. With three requests each, they use fewer connections than the client has. */
export const AT_A_TIME = 16;

/** `brief`: stored ranges are not read, and the status has the figures of the last passes instead. */
export type StatusDetails = 'full' | 'brief';

/** Reads the table items of a cluster, except the saved answers to requests, which can be most of the items. */
export async function readInputs(
  table: KeyValueTable,
  cluster: ListedCluster,
  pausedAll: Pause | undefined,
  details: StatusDetails,
): Promise<StatusInputs> {
  const { name } = cluster.spec;
  const unreadable = new Map<string, UnreadableItem>();
  /** If the error is `Corrupt` or `SchemaTooNew`, records that table items are unreadable. @throws any other error */
  const note = (key: string, error: unknown): undefined => {
    if (!(error instanceof TableError) || (error.code !== 'Corrupt' && error.code !== 'SchemaTooNew')) throw error;
    // The list and the read of one item fail with the same message. The later entry, of the read, has the key.
    unreadable.set(error.message, { key, message: error.message });
  };
  const readKeys = async (keys: readonly string[]): Promise<readonly Item[]> => {
    const items = await eachOf(keys, AT_A_TIME, (key) => table.get(name, key).catch((error) => note(key, error)));
    return items.filter((item) => item !== undefined);
  };
  /** Lists the items with the prefix. If an item makes the list fail, reads the known keys one by one. */
  const readItems = (prefix: string, knownKeys: readonly string[]): Promise<readonly Item[]> =>
    table.list(name, prefix).catch((error) => {
      note('', error);
      return readKeys(knownKeys);
    });
  const decoded = <Content>(items: readonly Item[], decode: (item: Item) => Content): Content[] =>
    items.flatMap((item) => {
      try {
        return [decode(item)];
      } catch (error) {
        return note(item.key, error) ?? [];
      }
    });
  const [leases, runs, ranges] = await Promise.all([
    readKeys([LEASES]),
    readItems('runs/', LOOPS.map(runKey)),
    details === 'full' ? readItems('ranges/', Object.values(RANGE_KEYS)) : undefined,
  ]);
  const ownRuns = runs.filter(({ key }) => LOOPS.some((loop) => key === runKey(loop)));
  return {
    cluster,
    pausedAll,
    leases: decoded(leases, decodeLeases).flat(),
    records: Object.fromEntries(
      decoded(ownRuns, (item) => [item.key.slice('runs/'.length), decodeRunRecord(item)] as const),
    ),
    ...(ranges && { ranges: decoded(ranges, savedRange).flat() }),
    unreadable: [...unreadable.values()],
  };
}

function savedRange(item: Item): SavedRange[] {
  const key = Object.values(RANGE_KEYS).find((known) => known === item.key);
  return key === undefined ? [] : [{ key, stored: decodeRange(item), savedAtMs: item.updatedAtMs }];
}
