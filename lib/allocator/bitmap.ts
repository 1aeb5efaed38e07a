import { bitsOf, byteOf, hasBit, popCount, trimmed } from './snapshot-bytes.ts';

/** Returns a uniform random integer in [0, below). `below` is at least 1. */
export type Pick = (below: number) => number;

export interface BitmapOptions {
  /** Usable items: 0 to `max - 1`. */
  readonly max: number;
  /** The size of the low band that `allocateNext` uses last. May exceed `max`. */
  readonly reserved: number;
  readonly pick: Pick;
}

/**
 * The allocated ones of `max` items, each by its number below `max` (`pkg/registry/core/service/allocator/bitmap.go`).
 *
 * Invariant: `used` is the number of set bits. Restored data may have bits at `max` and above: they are kept and
 * counted, so that `free` can be negative.
 */
export class AllocationBitmap {
  readonly #max: number;
  readonly #reserved: number;
  readonly #pick: Pick;
  /** A snapshot, padded. It has no memory until a bit is set, so an unused /8 costs nothing. */
  #data = new Uint8Array(0);
  #used = 0;

  constructor({ max, reserved, pick }: BitmapOptions) {
    this.#max = max;
    this.#reserved = Math.min(reserved, max);
    this.#pick = pick;
  }

  copy(): AllocationBitmap {
    const copy = new AllocationBitmap({ max: this.#max, reserved: this.#reserved, pick: this.#pick });
    copy.#data = this.#data.slice();
    copy.#used = this.#used;
    return copy;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.#max - this.#used;
  }

  /** Whether the item is now this caller's. */
  allocate(item: number): boolean {
    if (this.has(item)) return false;
    this.#take(item);
    return true;
  }

  /**
   * Allocates the first free item at or after a random start, cyclically: first in the band above the reserved one,
   * then in the reserved one. Returns `undefined` if nothing is free.
   */
  allocateNext(): number | undefined {
    if (this.free <= 0) return undefined;
    const item = this.#freeItemIn(this.#reserved, this.#max) ?? this.#freeItemIn(0, this.#reserved);
    if (item !== undefined) this.#take(item);
    return item;
  }

  /** Releasing a free item has no effect. */
  release(item: number): void {
    if (!this.has(item)) return;
    this.#flip(item);
    this.#used--;
  }

  has(item: number): boolean {
    return hasBit(this.#data, item);
  }

  /** Returns the allocated items, ascending. */
  items(): number[] {
    return bitsOf(this.#data);
  }

  snapshot(): Uint8Array {
    return trimmed(this.#data);
  }

  restore(snapshot: Uint8Array): void {
    const data = trimmed(snapshot);
    this.#data = new Uint8Array(Math.max(data.length, Math.ceil(this.#max / 8)));
    this.#data.set(data, this.#data.length - data.length);
    this.#used = popCount(data);
  }

  #take(item: number): void {
    if (this.#data.length === 0) this.#data = new Uint8Array(Math.ceil(this.#max / 8));
    this.#flip(item);
    this.#used++;
  }

  #flip(item: number): void {
    const index = this.#data.length - 1 - (item >>> 3);
    this.#data[index] = (this.#data[index] ?? 0) ^ (1 << (item & 7));
  }

  /** An empty band draws no random number. */
  #freeItemIn(low: number, high: number): number | undefined {
    if (low >= high) return undefined;
    const start = low + this.#pick(high - low);
    return this.#firstFree(start, high) ?? this.#firstFree(low, start);
  }

  /** A byte of eight allocated items is skipped at once. */
  #firstFree(from: number, end: number): number | undefined {
    let item = from;
    while (item < end && this.has(item)) item += item % 8 === 0 && byteOf(this.#data, item / 8) === 0xff ? 8 : 1;
    return item < end ? item : undefined;
  }
}
