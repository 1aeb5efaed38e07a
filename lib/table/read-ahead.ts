import type { ItemKey, KeyValueTable } from './key-value-table.ts';
import { idOf } from './stored-item.ts';

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
