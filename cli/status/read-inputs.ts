import { eachOf } from '../../lib/cluster/async.ts';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import type { Lease } from '../../lib/cluster/lease.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { ListedCluster, Pause } from '../../lib/table/clusters.ts';
import { type Item, type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { decodeLeases, LEASES } from '../../lib/table/leases.ts';
import { decodeRange } from '../../lib/table/ranges.ts';
import { decodeRunRecord, type RunRecords, runKey } from '../../lib/table/run-records.ts';

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
  /** The key of the item. Empty if the error of the table does not name it. */
  readonly key: string;
  readonly message: string;
}

/**
 * The number of clusters that are read at a time. Each cluster needs three lists. All lists together need fewer connections
 * than the table's client has.
 */
export const AT_A_TIME = 16;

/**
 * The details to read. `brief` omits the ranges, which are most of the data: the figures are those of the last passes, and
 * there is no map.
 */
export type StatusDetails = 'full' | 'brief';

/** Reads the items of a cluster, without the answers to requests, which may be most of them. */
export async function readInputs(
  table: KeyValueTable,
  cluster: ListedCluster,
  pausedAll: Pause | undefined,
  details: StatusDetails,
): Promise<StatusInputs> {
  const { name } = cluster.spec;
  const [leases, runs, ranges] = await Promise.all([
    readKeys(table, name, [LEASES]),
    readItems(table, name, 'runs/', LOOPS.map(runKey)),
    details === 'full' ? readItems(table, name, 'ranges/', Object.values(RANGE_KEYS)) : undefined,
  ]);
  const unreadable = [leases, runs, ranges].flatMap((found) => found?.unreadable ?? []);
  return {
    cluster,
    pausedAll,
    leases: decoded(leases.items, decodeLeases, unreadable).flat(),
    records: Object.fromEntries(
      decoded(
        runs.items.filter(({ key }) => LOOPS.some((loop) => key === runKey(loop))),
        (item) => [item.key.slice('runs/'.length), decodeRunRecord(item)],
        unreadable,
      ),
    ),
    ...(ranges && { ranges: decoded(ranges.items, savedRange, unreadable).flat() }),
    unreadable,
  };
}

interface ReadItems {
  readonly items: readonly Item[];
  readonly unreadable: readonly UnreadableItem[];
}

/** Returns the items with the prefix. If the list fails because of one item, reads the keys in `knownKeys` one by one. */
async function readItems(
  table: KeyValueTable,
  cluster: string,
  prefix: string,
  knownKeys: readonly string[],
): Promise<ReadItems> {
  try {
    return { items: await table.list(cluster, prefix), unreadable: [] };
  } catch (error) {
    return readKeys(table, cluster, knownKeys, unreadableItem('', error));
  }
}

/**
 * @param known an item that could not be read by the list
 */
async function readKeys(
  table: KeyValueTable,
  cluster: string,
  keys: readonly string[],
  known?: UnreadableItem,
): Promise<ReadItems> {
  const unreadable = new Map(known && [[known.message, known]]);
  const items = await eachOf(keys, AT_A_TIME, async (key) => {
    try {
      return await table.get(cluster, key);
    } catch (error) {
      const item = unreadableItem(key, error);
      unreadable.set(item.message, item);
      return undefined;
    }
  });
  return { items: items.filter((item) => item !== undefined), unreadable: [...unreadable.values()] };
}

function decoded<Content>(
  items: readonly Item[],
  decode: (item: Item) => Content,
  unreadable: UnreadableItem[],
): Content[] {
  return items.flatMap((item) => {
    try {
      return [decode(item)];
    } catch (error) {
      unreadable.push(unreadableItem(item.key, error));
      return [];
    }
  });
}

/** @throws errors that are not about an item. */
function unreadableItem(key: string, error: unknown): UnreadableItem {
  if (!(error instanceof TableError) || (error.code !== 'Corrupt' && error.code !== 'SchemaTooNew')) throw error;
  return { key, message: error.message };
}

function savedRange(item: Item): SavedRange[] {
  const key = Object.values(RANGE_KEYS).find((known) => known === item.key);
  return key === undefined ? [] : [{ key, stored: decodeRange(item), savedAtMs: item.updatedAtMs }];
}
