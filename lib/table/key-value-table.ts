import { CodedError } from '../util/values.ts';

/** The value of an attribute. Bytes are stored as binary: the bitmap of a /16 takes 8 KB, and as base64 it would take 11 KB. */
export type TableValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly TableValue[]
  | { readonly [field: string]: TableValue | undefined };

/** One stored item. `cluster` is the partition key. `key` is the etcd key if etcd has the item, such as `ranges/serviceips`. */
export interface Item {
  readonly cluster: string;
  readonly key: string;
  readonly value: TableValue;
  /** The id of the last write. Conditional writes compare this id, never `version`. */
  readonly writeId: string;
  /** Traces of the earlier writes, the latest last. If the reply to a write was lost, its trace proves that the write happened. */
  readonly earlierWrites?: Uint8Array;
  /** The number of writes. No write depends on this number. If a deleted item is created again, the number restarts at 1. */
  readonly version: number;
  /** The version of the layout of `value`. A version of this program reads its own layout and the previous layout. */
  readonly schema: number;
  readonly updatedAtMs: number;
  /** The time at which the item expires. The table keeps the item longer, so readers must check this time. */
  readonly expiresAtMs?: number;
}

export type ItemKey = Pick<Item, 'cluster' | 'key'>;

export interface NewItem extends Pick<Item, 'cluster' | 'key' | 'value' | 'schema' | 'expiresAtMs'> {
  /** The number of earlier writes that the item remembers. Default: 64, enough for an item with many concurrent writers. */
  readonly writesKept?: number;
}

export type WriteResult =
  /** The write happened; another write may have followed. `withheld`: a simulated write, because this caller must not write. */
  | { readonly outcome: 'won'; readonly item: Item; readonly withheld?: true }
  /** The write did not and will not happen. `current` is the item that another writer changed, if the table returned it. */
  | { readonly outcome: 'lost'; readonly current?: Item | undefined }
  /** The reply was lost, and the current item does not show whether the write happened. Read the item again before you continue. */
  | { readonly outcome: 'unclear' };

/**
 * The key-value table with conditional writes, in place of etcd. Only DynamoDB's TTL deletes items. Every read is strongly
 * consistent. Every write is conditional on `previous`, the item that was read (`undefined` if no item was found). The calls of
 * a table end at its deadline with a `TableError` of code `DeadlineExceeded`.
 */
export interface KeyValueTable {
  get(cluster: string, key: string): Promise<Item | undefined>;
  /** Returns the items of at most 100 keys, in the order of `keys`. The items may be read at different times during the call. */
  getAll(keys: readonly ItemKey[]): Promise<readonly (Item | undefined)[]>;
  /** Returns all items whose key starts with `prefix`, in byte order of their keys. */
  list(cluster: string, prefix: string): Promise<Item[]>;
  /** Iterates over a list that may be too long for memory. `beforeNext` is awaited before each page except the first. */
  pages?(cluster: string, prefix: string, beforeNext?: () => Promise<void>): AsyncIterable<readonly Item[]>;
  put(item: NewItem, previous: Item | undefined): Promise<WriteResult>;
}

/** The clock of this host, corrected by the times in the table's replies. */
export interface ServerClock {
  readonly nowMs: () => number;
  /** Returns true if at least one reply had a time. */
  readonly isMeasured: () => boolean;
  /** Returns the smallest difference between the clocks of host and table that explains the replies; 0 if none is needed. */
  readonly skewMs: () => number;
}

/** With a larger difference between the clocks, a function reports an error, and `kbctl` writes nothing that depends on time. */
export const MOST_SKEW_MS = 2_000;

/** The maximum size of an item that every backend can store. */
export const MOST_ITEM_BYTES = 400 * 1024;

/** The parts of a backend: the table and its clock. */
export interface Store {
  /** Returns the table. The signal ends the calls of the table. */
  readonly table: (deadline: AbortSignal) => KeyValueTable;
  readonly clock: ServerClock;
}

export type TableErrorCode =
  /** The table does not exist in this region and account. */
  | 'TableMissing'
  | 'AccessDenied'
  | 'Throttled'
  /** A network fault or a 5xx answer. A write may have happened. */
  | 'Unavailable'
  | 'DeadlineExceeded'
  | 'ItemTooLarge'
  | 'SchemaTooNew'
  | 'Corrupt'
  /** A guaranteed update lost every attempt, or an attempt has an unclear outcome. The next pass reads the item again. */
  | 'Contended'
  /** The registration that the caller wanted to replace has changed. */
  | 'ChangedMeanwhile'
  | 'Unexpected';

/** An unexpected error of the table. The message states what failed and what to do next. */
export class TableError extends CodedError<TableErrorCode> {
  override readonly name = 'TableError';
}
