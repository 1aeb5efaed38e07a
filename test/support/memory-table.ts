import {
  type Item,
  type KeyValueTable,
  MOST_ITEM_BYTES,
  TableError,
  type WriteResult,
} from '../../lib/table/key-value-table.ts';
import { itemOf, storedSize } from '../../lib/table/stored-item.ts';

/** The number of writes to all tables, which is the write id of the last one. */
let writes = 0;

export type MemoryStore = Map<string, Map<string, Item>>;

export interface MemoryTableOptions {
  readonly nowMs?: () => number;
  /** The items, which all views with the same store share. Default: a store of its own. */
  readonly store?: MemoryStore;
  readonly deadline?: AbortSignal;
}

export interface MemoryTable extends KeyValueTable {
  /** Deletes an item, as an operator or DynamoDB's TTL does. */
  remove(cluster: string, key: string): void;
}

export function memoryStore(): MemoryStore {
  return new Map();
}

export function copyOf<T>(store: Map<string, Map<string, T>>): Map<string, Map<string, T>> {
  return new Map([...store].map(([cluster, items]) => [cluster, new Map(items)]));
}

/** Returns a table in memory. Items are copied and frozen when they are written, so that no caller can change a stored item. */
export function memoryTable({
  nowMs = () => 0,
  store = memoryStore(),
  deadline,
}: MemoryTableOptions = {}): MemoryTable {
  const partition = (cluster: string): Map<string, Item> => {
    const items = store.get(cluster) ?? new Map<string, Item>();
    store.set(cluster, items);
    return items;
  };

  /** Makes a call of the table. The call fails if the deadline has passed, else it runs `step`, which has no I/O. */
  const call = async <T>(step: () => T): Promise<T> => {
    if (deadline?.aborted) throw new TableError('DeadlineExceeded', 'the pass has ended', { cause: deadline.reason });
    return step();
  };

  return {
    get: (cluster, key) => call(() => partition(cluster).get(key)),

    getAll: (keys) => call(() => keys.map(({ cluster, key }) => partition(cluster).get(key))),

    list: (cluster, prefix) =>
      call(() =>
        [...partition(cluster).values()]
          .filter(({ key }) => key.startsWith(prefix))
          .sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))),
      ),

    put: (content, previous) =>
      call((): WriteResult => {
        writes += 1;
        const item = frozen(itemOf(content, previous, String(writes), nowMs()));
        if (storedSize({ ...item }) > MOST_ITEM_BYTES) throw new TableError('ItemTooLarge', `${item.key} is too large`);
        const items = partition(item.cluster);
        const current = items.get(item.key);
        if (current?.writeId !== previous?.writeId) return { outcome: 'lost', current };
        items.set(item.key, item);
        return { outcome: 'won', item };
      }),

    remove: (cluster, key) => void partition(cluster).delete(key),
  };
}

/** Freezes a value and all of its parts. Binary data cannot be frozen. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
