import { CodedError } from '../cluster/values.ts';

/** The value of an attribute. Binary stays binary: a /16 takes 8 KB, not 11 KB of base64. */
export type TableValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly TableValue[]
  | { readonly [field: string]: TableValue | undefined };

/** One stored item. `cluster` is the partition; `key` is as in etcd (`ranges/serviceips`). */
export interface Item<Value extends TableValue = TableValue> {
  readonly cluster: string;
  readonly key: string;
  readonly value: Value;
  /** The id of the last write. Conditions compare it, never `version`. */
  readonly writeId: string;
  /**
   * Traces of the earlier writes, the latest last: they prove a write whose reply was lost. Absent: there were none, or
   * an older version wrote last.
   */
  readonly earlierWrites?: Uint8Array;
  /** Counts writes, for readers. It restarts at 1 when an item is created again. */
  readonly version: number;
  /** The version of the layout of `value`. Code reads its own version and the previous one. */
  readonly schema: number;
  readonly updatedAtMs: number;
  /** The item expires at this time. The table keeps it longer: the reader decides. */
  readonly expiresAtMs?: number;
}

export interface NewItem extends Pick<Item, 'cluster' | 'key' | 'value' | 'schema' | 'expiresAtMs'> {
  /** How many earlier writes the item remembers. Default: 64, for an item with many concurrent writers. */
  readonly writesKept?: number;
}

/**
 * `won`: this write happened; another may have followed. With `withheld`, the caller may not write, and no other writer
 * changed the item. `lost`: it did not and will not happen, because the item has changed since it was read. `unclear`:
 * a reply was lost and the present item proves neither; the caller ends and reads again.
 */
export type WriteResult<Written> =
  | { readonly outcome: 'won'; readonly item: Written; readonly withheld?: true }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'unclear' };

/**
 * The key-value table with conditional writes, in place of etcd.
 *
 * Every read is strongly consistent. Every write is conditional on the item that was read (`previous`; `undefined`:
 * there was none). An implementation is bound to one pass: its calls end with a `TableError` of code `DeadlineExceeded`
 * at the deadline of the pass.
 */
export interface KeyValueTable {
  get(cluster: string, key: string): Promise<Item | undefined>;
  /** Returns all items whose key starts with `prefix`, in byte order of their keys. */
  list(cluster: string, prefix: string): Promise<Item[]>;
  /**
   * Iterates over a list a page at a time, if it may be too long for memory. Absent: one page has it.
   * @param beforeNext is awaited before each page but the first
   */
  pages?(cluster: string, prefix: string, beforeNext?: () => Promise<void>): AsyncIterable<readonly Item[]>;
  put(item: NewItem, previous: Item | undefined): Promise<WriteResult<Item>>;
  delete(previous: Item): Promise<WriteResult<undefined>>;
}

export type TableErrorCode =
  /** The table does not exist in this region and account. */
  | 'TableMissing'
  | 'AccessDenied'
  | 'Throttled'
  /** Network faults and 5xx. A write may have happened. */
  | 'Unavailable'
  | 'DeadlineExceeded'
  /** An item is larger than the table allows. */
  | 'ItemTooLarge'
  /** An item's schema is newer than this code. */
  | 'SchemaTooNew'
  | 'Corrupt'
  /** A guaranteed update lost every attempt, or its outcome is unclear. The next pass reads again. */
  | 'Contended'
  /** The registration that the caller wanted to replace has changed. */
  | 'ChangedMeanwhile'
  | 'Unexpected';

/** An unexpected error of the table. The message states what failed and what to do next. */
export class TableError extends CodedError<TableErrorCode> {
  override readonly name = 'TableError';
}
