import { AllocatorError } from './errors.ts';
import { fromWords, popCount, type RangeSnapshot, wordsOf } from './snapshot-bytes.ts';
import { SummarizedBits } from './summarized-bits.ts';

/** A uniform whole number in [0, below). `below` is at least 1. */
export type Pick = (below: number) => number;

export interface BitmapOptions {
  /** Usable items: 0 to `max - 1`. */
  readonly max: number;
  /** What the items are of. A snapshot is restored only into a bitmap of the same. */
  readonly spec: string;
  /** Size of the low band that `allocateNext` touches last; none by default. May exceed `max`. */
  readonly reserved?: number;
  readonly pick: Pick;
}

/**
 * Which of `max` items are taken (`pkg/registry/core/service/allocator/bitmap.go`).
 *
 * Invariant: `used` is the number of set bits. A restored snapshot may set bits that are not below `max`: they are
 * kept and counted, so that `free` can be negative.
 */
export class AllocationBitmap {
  readonly max: number;
  readonly spec: string;
  readonly reserved: number;
  readonly #pick: Pick;
  /** Without room until something is set: the range of a /8 costs nothing before it is used. */
  #bits = SummarizedBits.ofCapacity(0);
  #used = 0;

  constructor({ max, spec, reserved = 0, pick }: BitmapOptions) {
    this.max = max;
    this.spec = spec;
    this.reserved = reserved;
    this.#pick = pick;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.max - this.#used;
  }

  /** Whether the item is now this caller's; an error when there is no such item. */
  allocate(item: number): boolean | AllocatorError {
    if (item < 0 || item >= this.max) {
      return new AllocatorError('NotInRange', `offset ${item} out of range [0,${this.max}]`);
    }
    if (this.has(item)) return false;
    this.#take(item);
    return true;
  }

  /**
   * Takes the first free item at or after a random start, going round: first in the band above the reserved one, then
   * in the reserved one. `undefined` when nothing is free.
   */
  allocateNext(): number | undefined {
    if (this.#used >= this.max) return undefined;
    const reserved = Math.min(this.reserved, this.max);
    const item = this.#freeItemIn(reserved, this.max) ?? this.#freeItemIn(0, reserved);
    if (item !== undefined) this.#take(item);
    return item;
  }

  /** Releasing what is free does nothing. */
  release(item: number): void {
    if (!this.has(item)) return;
    this.#bits.clear(item);
    this.#used--;
  }

  has(item: number): boolean {
    return item >= 0 && item < this.#bits.capacity && this.#bits.has(item);
  }

  /** Taken items, ascending. */
  *items(): Generator<number, void, undefined> {
    for (const [index, word] of this.#bits.words.entries()) {
      for (let rest = word; rest !== 0; rest &= rest - 1) yield index * 32 + 31 - Math.clz32(rest & -rest);
    }
  }

  snapshot(): RangeSnapshot {
    return { range: this.spec, data: fromWords(this.#bits.words) };
  }

  restore(snapshot: RangeSnapshot): AllocatorError | undefined {
    if (snapshot.range !== this.spec) {
      return new AllocatorError('MismatchedRange', 'the provided range does not match the current range');
    }
    this.#bits = new SummarizedBits(wordsOf(snapshot.data, Math.ceil(this.max / 32)));
    this.#used = popCount(snapshot.data);
    return undefined;
  }

  #take(item: number): void {
    if (item >= this.#bits.capacity) this.#bits = SummarizedBits.ofCapacity(this.max);
    this.#bits.set(item);
    this.#used++;
  }

  /** An empty band draws no number. */
  #freeItemIn(low: number, high: number): number | undefined {
    if (low >= high) return undefined;
    const start = low + this.#pick(high - low);
    const after = this.#bits.nextClear(start);
    if (after < high) return after;
    const before = this.#bits.nextClear(low);
    return before < start ? before : undefined;
  }
}
