import type { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits, hasBit, subtract } from '../allocator/snapshot-bytes.ts';
import { type Hold, type HoldTerms, holdsByItem, withHold, withoutHolds } from '../cluster/hold.ts';
import { keepUnclaimed, type StoredRange, type Unclaimed, withUnclaimed } from '../cluster/stored-range.ts';

/** The state of an item. What is not in the range is neither free nor taken. */
export type ItemState =
  | { readonly inRange: false }
  | {
      readonly inRange: true;
      readonly taken: boolean;
      /** Counted passes that saw it without a Service. */
      readonly strikes: 0 | 1 | 2;
      /** `next` allocates from the static band only when the dynamic one is full. */
      readonly band: 'static' | 'dynamic';
      /** Over or not. */
      readonly hold?: Hold;
    };

/**
 * A stored range while one operation changes it. Every operation on an item clears its strikes and its mark as
 * unclaimed: both belong to one allocation, and the next owner of an address starts without any.
 */
export class RangeDraft<Item> {
  readonly #stored: StoredRange;
  readonly #allocator: RangeAllocator<Item>;
  /** By bit. */
  readonly #touched = new Set<number>();
  #holds: readonly Hold[];
  #byItem: Map<string, Hold> | undefined;
  #unclaimed: Unclaimed | undefined;

  /** `allocator` has what `stored` says is taken. */
  constructor(stored: StoredRange, allocator: RangeAllocator<Item>) {
    this.#stored = stored;
    this.#allocator = allocator;
    this.#holds = stored.holds;
  }

  get holds(): readonly Hold[] {
    return this.#holds;
  }

  get free(): number {
    return this.#allocator.free;
  }

  /** What admission had allocated before this operation and no pass has seen in a Service. */
  get unclaimed(): readonly Unclaimed[] {
    return this.#stored.unclaimed ?? [];
  }

  /** The range to store; undefined when no operation was made. */
  get changed(): StoredRange | undefined {
    if (this.#touched.size === 0) return undefined;
    const { unclaimed: _, ...stored } = this.#stored;
    const { once, twice } = stored.strikes;
    const unclaimed = this.#unclaimedNow();
    const touched = fromBits(this.#touched);
    return {
      ...stored,
      data: this.#allocator.snapshot().data,
      strikes: { ...stored.strikes, once: subtract(once, touched), twice: subtract(twice, touched) },
      holds: this.#holds,
      ...(unclaimed.length > 0 && { unclaimed }),
    };
  }

  allocate(item: Item): { readonly item: Item } | AllocatorError {
    const refused = this.#allocator.allocate(item);
    return refused ?? { item: this.#touch(item) };
  }

  allocateNext(): { readonly item: Item } | AllocatorError {
    const next = this.#allocator.allocateNext();
    if ('item' in next) this.#touch(next.item);
    return next;
  }

  /** Ends the item's hold, and leaves it allocated. */
  claim(item: Item): { readonly item: Item } {
    this.#setHolds(withoutHolds(this.#holds, [this.textOf(item)]));
    return { item: this.#touch(item) };
  }

  release(item: Item): { readonly item: Item } {
    this.#allocator.release(item);
    return this.claim(item);
  }

  /** Replaces any holds on the items. */
  hold(items: readonly Item[], terms: HoldTerms): void {
    const texts = items.map((item) => this.textOf(this.#touch(item)));
    this.#setHolds(withHold(this.#holds, texts, terms));
  }

  /** Records what a Service has unclaimed by now; `bits` of it answer this review. */
  recordUnclaimed(unclaimed: Unclaimed, bits: readonly number[]): void {
    for (const bit of bits) this.#touched.add(bit);
    this.#unclaimed = unclaimed;
  }

  has(item: Item): boolean {
    return this.#allocator.has(item);
  }

  holdOn(item: Item): Hold | undefined {
    this.#byItem ??= holdsByItem(this.#holds);
    return this.#byItem.get(this.textOf(item));
  }

  stateOf(item: Item): ItemState {
    const bit = this.#allocator.indexOf(item);
    if (bit === undefined) return { inRange: false };
    const { once, twice } = this.#stored.strikes;
    const hold = this.holdOn(item);
    return {
      inRange: true,
      taken: this.has(item),
      strikes: hasBit(twice, bit) ? 2 : hasBit(once, bit) ? 1 : 0,
      band: bit < this.#allocator.reserved ? 'static' : 'dynamic',
      ...(hold && { hold }),
    };
  }

  /** The item of a hold's text, in its canonical form; undefined when it is not in the range. */
  itemOf(text: string): Item | undefined {
    return this.#allocator.itemOf(text);
  }

  itemAt(bit: number): Item {
    return this.#allocator.itemAt(bit);
  }

  textOf(item: Item): string {
    return String(this.itemOf(String(item)) ?? item);
  }

  bitOf(item: Item): number | undefined {
    return this.#allocator.indexOf(item);
  }

  #setHolds(holds: readonly Hold[]): void {
    this.#holds = holds;
    this.#byItem = undefined;
  }

  #unclaimedNow(): readonly Unclaimed[] {
    const others = keepUnclaimed(this.unclaimed, (bit) => !this.#touched.has(bit));
    return this.#unclaimed === undefined ? others : withUnclaimed(others, this.#unclaimed);
  }

  /** The item in its canonical form. */
  #touch(item: Item): Item {
    const bit = this.#allocator.indexOf(item);
    if (bit === undefined) return item;
    this.#touched.add(bit);
    return this.#allocator.itemAt(bit);
  }
}
