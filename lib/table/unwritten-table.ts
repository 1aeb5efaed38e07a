import type { Item, KeyValueTable } from './key-value-table.ts';
import { itemOf } from './stored-item.ts';

export interface UnwrittenOptions {
  readonly nowMs: () => number;
  readonly newWriteId: () => string;
}

/**
 * The table for the passes of a stack that does not own the cluster: each reads what the owner wrote and, over it, what
 * it would have written itself. Nothing of that is in the table, and all of it is forgotten with this view.
 */
export function unwrittenTable(table: KeyValueTable, { nowMs, newWriteId }: UnwrittenOptions): KeyValueTable {
  /** `undefined`: deleted. */
  const own = new Map<string, Item | undefined>();
  const idOf = ({ cluster, key }: Pick<Item, 'cluster' | 'key'>) => JSON.stringify([cluster, key]);

  const get = async (cluster: string, key: string): Promise<Item | undefined> => {
    const id = idOf({ cluster, key });
    return own.has(id) ? own.get(id) : table.get(cluster, key);
  };

  return {
    get,
    list: async (cluster, prefix) => {
      const owners = (await table.list(cluster, prefix)).filter((item) => !own.has(idOf(item)));
      const mine = [...own.values()].filter((item) => item !== undefined);
      const listed = mine.filter((item) => item.cluster === cluster && item.key.startsWith(prefix));
      return [...owners, ...listed].sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
    },
    put: async (content, previous) => {
      if ((await get(content.cluster, content.key))?.writeId !== previous?.writeId) return { outcome: 'lost' };
      const item = itemOf(content, previous, newWriteId(), nowMs());
      own.set(idOf(item), item);
      return { outcome: 'won', item };
    },
    delete: async (previous) => {
      if ((await get(previous.cluster, previous.key))?.writeId !== previous.writeId) return { outcome: 'lost' };
      own.set(idOf(previous), undefined);
      return { outcome: 'won', item: undefined };
    },
  };
}
