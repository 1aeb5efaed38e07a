import type { Item, KeyValueTable, NewItem } from './key-value-table.ts';

const PREFIX = 'ranges/';

/**
 * The table for passes that only observe: a write to a range is told instead of made, and answered as if it was won.
 * Everything else goes through.
 */
export function observeRanges(table: KeyValueTable, tell: (description: string) => void): KeyValueTable {
  return {
    get: (cluster, key) => table.get(cluster, key),
    list: (cluster, prefix) => table.list(cluster, prefix),
    put: async (content, previous) => {
      if (!content.key.startsWith(PREFIX)) return table.put(content, previous);
      tell(`${previous === undefined ? 'create' : 'update'} ${content.key}`);
      return { outcome: 'won', item: unwritten(content, previous) };
    },
    delete: async (previous) => {
      if (!previous.key.startsWith(PREFIX)) return table.delete(previous);
      tell(`delete ${previous.key}`);
      return { outcome: 'won', item: undefined };
    },
  };
}

/** The item as it would be, but for its writeId and date: the real one, if there is any, stays the condition. */
function unwritten(content: NewItem, previous: Item | undefined): Item {
  return {
    ...content,
    writeId: previous?.writeId ?? 'observed',
    version: (previous?.version ?? 0) + 1,
    updatedAtMs: previous?.updatedAtMs ?? 0,
  };
}
