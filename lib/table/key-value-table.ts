/** What an attribute of the table can hold. Binary stays binary: a /16 is 8 KB of it, not 11 KB of base64. */
export type TableValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly TableValue[]
  | { readonly [field: string]: TableValue | undefined };

/** One stored item. `cluster` is the partition, `key` looks as it does in etcd (`ranges/serviceips`). */
export interface Item<Value extends TableValue = TableValue> {
  readonly cluster: string;
  readonly key: string;
  readonly value: Value;
  /** Identity of the write that left this item. Conditions compare this, never `version`. */
  readonly writeId: string;
  /**
   * Traces of the writes before that one, the latest last: they prove a write whose reply was lost.
   * Absent: there was none before, or an older version wrote last.
   */
  readonly earlierWrites?: Uint8Array;
  /** Counts writes, for people. It starts again at 1 when an item is created again. */
  readonly version: number;
  /** Layout of `value`; code reads its own and the one before. */
  readonly schema: number;
  readonly updatedAtMs: number;
  /** After this the item counts as expired. The table keeps it longer: the reader decides. */
  readonly expiresAtMs?: number;
}

export interface NewItem extends Pick<Item, 'cluster' | 'key' | 'value' | 'schema' | 'expiresAtMs'> {
  /** How many writes before this one the item remembers. Default: 64, for an item that many callers write at once. */
  readonly writesKept?: number;
}

/**
 * `won`: this write happened; another may have followed. With `withheld`, the caller may not write, and no other writer
 * changed the item. `lost`: it did not happen and never will, since the item is no longer the one that was read.
 * `unclear`: a reply was lost and the present item proves neither; the caller ends and reads again.
 */
export type WriteResult<Written> =
  | { readonly outcome: 'won'; readonly item: Written; readonly withheld?: true }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'unclear' };

/**
 * The conditional-write key-value table that stands in for etcd.
 *
 * Every read is strongly consistent. Every write is conditional on what was read: `previous` is the item that the
 * caller has in hand, `undefined` says that there was none. An implementation is bound to one pass: its calls end, with
 * a `TableError` of code `DeadlineExceeded`, when the pass's deadline does.
 */
export interface KeyValueTable {
  get(cluster: string, key: string): Promise<Item | undefined>;
  /** Items whose key starts with `prefix`, in byte order of their keys; all pages of them. */
  list(cluster: string, prefix: string): Promise<Item[]>;
  /**
   * The same, a page at a time, where a list may be too long to be in memory whole. Absent: one page holds it.
   * @param beforeNext is awaited before each page but the first
   */
  pages?(cluster: string, prefix: string, beforeNext?: () => Promise<void>): AsyncIterable<readonly Item[]>;
  put(item: NewItem, previous: Item | undefined): Promise<WriteResult<Item>>;
  delete(previous: Item): Promise<WriteResult<undefined>>;
}
