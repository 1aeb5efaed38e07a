import { type Item, type KeyValueTable, TableError, type WriteResult } from '../../lib/table/key-value-table.ts';
import { itemOf, storedForm, storedSize } from '../../lib/table/stored-item.ts';

const MAX_ITEM_BYTES = 400 * 1024;

/** What is in the table: items by key, by cluster. */
export type MemoryStore = Map<string, Map<string, Item>>;

export interface MemoryTableOptions {
  /** Default: time 0. */
  readonly nowMs?: () => number;
  /** Default: `w1`, `w2`, ... of this view. */
  readonly newWriteId?: () => string;
  /** Views that are given the same store see the same items. Default: one of its own. */
  readonly store?: MemoryStore;
  readonly deadline?: AbortSignal;
}

export function memoryStore(): MemoryStore {
  return new Map();
}

/** The table in this process's memory. What goes in and what comes out are copies. */
export function memoryTable({
  nowMs = () => 0,
  newWriteId = countedWriteIds(),
  store = memoryStore(),
  deadline,
}: MemoryTableOptions = {}): KeyValueTable {
  const partition = (cluster: string): Map<string, Item> => {
    const items = store.get(cluster) ?? new Map<string, Item>();
    store.set(cluster, items);
    return items;
  };

  /** Turns what is done in one step into a call that can fail. */
  const call = async <T>(step: () => T): Promise<T> => {
    if (deadline?.aborted) throw deadlineExceeded(deadline);
    return step();
  };

  return {
    get: (cluster, key) =>
      call(() => {
        const item = partition(cluster).get(key);
        return item && copyOf(item);
      }),

    list: (cluster, prefix) =>
      call(() =>
        [...partition(cluster).values()]
          .filter(({ key }) => key.startsWith(prefix))
          .sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
          .map(copyOf),
      ),

    put: (content, previous) =>
      call((): WriteResult<Item> => {
        const item = itemOf(content, previous, newWriteId(), nowMs());
        if (storedSize({ ...item }) > MAX_ITEM_BYTES) throw itemTooLarge(item);
        const items = partition(item.cluster);
        if (items.get(item.key)?.writeId !== previous?.writeId) return { outcome: 'lost' };
        items.set(item.key, item);
        return { outcome: 'won', item: copyOf(item) };
      }),

    delete: (previous) =>
      call((): WriteResult<undefined> => {
        const items = partition(previous.cluster);
        if (items.get(previous.key)?.writeId !== previous.writeId) return { outcome: 'lost' };
        items.delete(previous.key);
        return { outcome: 'won', item: undefined };
      }),
  };
}

function copyOf(item: Item): Item {
  return { ...item, value: storedForm(item.value) };
}

function itemTooLarge({ cluster, key }: Item): TableError {
  return new TableError('ItemTooLarge', `${cluster}/${key} is larger than the 400 KB that the table takes.`);
}

function deadlineExceeded(deadline: AbortSignal): TableError {
  return new TableError('DeadlineExceeded', 'The pass ended before its call to the table; the next pass reads again.', {
    cause: deadline.reason,
  });
}

/** `w1`, `w2`, ...: ids that are told apart and read easily. */
export function countedWriteIds(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `w${count}`;
  };
}
