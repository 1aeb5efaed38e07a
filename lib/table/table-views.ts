import type { Item, ItemKey, KeyValueTable } from './key-value-table.ts';
import { describeRangeWrite, isRangeKey } from './ranges.ts';
import { idOf, itemOf } from './stored-item.ts';

export interface UnwrittenOptions {
  readonly nowMs: () => number;
  /** Returns whether a write of the item with this key is withheld. Default: all writes are withheld. */
  readonly isWithheld?: (key: string) => boolean;
  /** Reports each withheld write of a range. */
  readonly wouldWrite?: (description: string) => void;
}

/** Returns a view of the table that withholds writes. The view keeps withheld writes in memory, and its reads return them. */
export function unwrittenTable(
  table: KeyValueTable,
  { nowMs, isWithheld = () => true, wouldWrite }: UnwrittenOptions,
): KeyValueTable {
  /** The items of withheld writes. */
  const own = new Map<string, Item>();
  let writes = 0;

  const get = async (cluster: string, key: string): Promise<Item | undefined> =>
    own.get(idOf({ cluster, key })) ?? table.get(cluster, key);

  return {
    get,
    getAll: (keys) => Promise.all(keys.map(({ cluster, key }) => get(cluster, key))),
    list: async (cluster, prefix) => {
      const owners = (await table.list(cluster, prefix)).filter((item) => !own.has(idOf(item)));
      const listed = [...own.values()].filter((item) => item.cluster === cluster && item.key.startsWith(prefix));
      return [...owners, ...listed].sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
    },
    put: async (content, previous) => {
      if (!isWithheld(content.key)) return table.put(content, previous);
      if ((await get(content.cluster, content.key))?.writeId !== previous?.writeId) return { outcome: 'lost' };
      writes += 1;
      const item = itemOf(content, previous, `unwritten-${writes}`, nowMs());
      if (isRangeKey(content.key)) wouldWrite?.(describeRangeWrite(item, previous));
      own.set(idOf(item), item);
      return { outcome: 'won', item, withheld: true };
    },
  };
}

/**
 * Reads items with one call, and returns a view of the table. The first `get` of each item returns what was read. A
 * later `get`, or a `get` after a write through the view, reads the table.
 */
export async function readAhead(table: KeyValueTable, keys: readonly ItemKey[]): Promise<KeyValueTable> {
  const items = await table.getAll(keys);
  const ahead = new Map(keys.map((key, index) => [idOf(key), items[index]]));
  return {
    ...table,
    get: async (cluster, key) => {
      const id = idOf({ cluster, key });
      if (!ahead.has(id)) return table.get(cluster, key);
      const item = ahead.get(id);
      ahead.delete(id);
      return item;
    },
    put: (content, previous) => {
      ahead.delete(idOf(content));
      return table.put(content, previous);
    },
  };
}
