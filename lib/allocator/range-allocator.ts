import type { AllocatorError } from './errors.ts';

/** The original's `RangeAllocation`: canonical text of the range, and the bits of what is taken (`snapshot-bytes.ts`). */
export interface RangeSnapshot {
  readonly range: string;
  readonly data: Uint8Array;
}

/** What IP ranges (`Item` is canonical address text) and port ranges (`Item` is a port) have in common. Not shared between passes. */
export interface RangeAllocator<Item> {
  /** Canonical text: `10.0.0.0/24`, `30000-32767`. */
  readonly spec: string;
  /** Usable items. */
  readonly max: number;
  /** Size of the low band that `allocateNext` touches last. */
  readonly reserved: number;
  readonly free: number;
  readonly used: number;
  /** Bit number of an item, `undefined` when it is not in the range. */
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** The item that the text names; `undefined` when that is not in the range. */
  itemOf(text: string): Item | undefined;
  /** `undefined` when the item is now this caller's. */
  allocate(item: Item): AllocatorError | undefined;
  allocateNext(): { readonly item: Item } | AllocatorError;
  /** Releasing what is free, or not in the range, does nothing. */
  release(item: Item): void;
  has(item: Item): boolean;
  /** Taken items, ascending. */
  items(): Iterable<Item>;
  snapshot(): RangeSnapshot;
  restore(snapshot: RangeSnapshot): AllocatorError | undefined;
}

/** A uniform whole number in [0, below). `below` is at least 1. */
export type Pick = (below: number) => number;
