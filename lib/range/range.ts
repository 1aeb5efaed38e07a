import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { Refusal } from '../allocator/refusal.ts';
import { fromBits, hasBit, subtract } from '../allocator/snapshot-bytes.ts';
import { type Hold, type HoldTerms, holdOn, withHold, withoutHolds } from './hold.ts';
import { keepUnclaimed, type LeakStrikes, type StoredRange, type Unclaimed, withUnclaimed } from './stored-range.ts';

/** The state of an item, which is in canonical form. */
export interface ItemState<Item> {
  readonly item: Item;
  readonly taken: boolean;
  readonly hold?: Hold;
}

/** The item that was taken, in canonical form, and the range after that. */
export interface Taken<Item> {
  readonly item: Item;
  readonly range: Range<Item>;
}

/**
 * A range as an immutable value: each operation returns a new range. An operation on an item clears its strikes and its mark
 * as unclaimed, because both belong to a single allocation.
 */
export class Range<Item> {
  readonly #taken: RangeAllocator<Item>;
  readonly #kept: Omit<StoredRange, 'data'>;

  /** `taken` has a bit for each item. The caller must not change it afterwards. */
  constructor(kept: Omit<StoredRange, 'data'>, taken: RangeAllocator<Item>) {
    this.#kept = kept;
    this.#taken = taken;
  }

  get content(): StoredRange {
    return { ...this.#kept, data: this.#taken.snapshot().data };
  }

  get unclaimed(): readonly Unclaimed[] {
    return this.#kept.unclaimed;
  }

  get free(): number {
    return this.#taken.free;
  }

  take(item: Item): Taken<Item> | Refusal {
    const taken = this.#taken.copy();
    const refusal = taken.allocate(item);
    return refusal ?? { item: this.canonical(item), range: this.#after([item], { taken }) };
  }

  takeNext(): Taken<Item> | Refusal {
    const taken = this.#taken.copy();
    const next = taken.allocateNext();
    return 'item' in next ? { item: next.item, range: this.#after([next.item], { taken }) } : next;
  }

  claim(item: Item): Taken<Item> {
    return { item: this.canonical(item), range: this.#after([item], { holds: this.#holdsWithout(item) }) };
  }

  release(item: Item): Range<Item> {
    const taken = this.#taken.copy();
    taken.release(item);
    return this.#after([item], { taken, holds: this.#holdsWithout(item) });
  }

  hold(items: readonly Item[], terms: HoldTerms): Range<Item> {
    const texts = items.map((item) => this.textOf(item));
    return this.#after(items, { holds: withHold(this.#kept.holds, texts, terms) });
  }

  /**
   * Records items that admission allocated for a Service and that no pass has seen in it yet. `items` are the items of the
   * current review.
   */
  withUnclaimed(unclaimed: Unclaimed, items: readonly Item[]): Range<Item> {
    const kept = this.#after(items, {}).#kept;
    return new Range({ ...kept, unclaimed: withUnclaimed(kept.unclaimed, unclaimed) }, this.#taken);
  }

  has(item: Item): boolean {
    return this.#taken.has(item);
  }

  holdOn(item: Item): Hold | undefined {
    return holdOn(this.#kept.holds, this.textOf(item));
  }

  heldBy(requestId: string): readonly Item[] {
    return this.#kept.holds
      .filter((hold) => hold.requestId === requestId)
      .flatMap(({ items }) => items.flatMap((text) => this.itemOf(text) ?? []));
  }

  /** Returns the state of an item, or upstream's refusal if the item is not in the range. */
  stateOf(item: Item): ItemState<Item> | Refusal {
    const hold = this.holdOn(item);
    const state = { item: this.canonical(item), taken: this.has(item), ...(hold && { hold }) };
    return this.refusalIfOutside(item) ?? state;
  }

  refusalIfOutside(item: Item): Refusal | undefined {
    return this.#taken.refusalIfOutside(item);
  }

  /** Parses an item into its canonical form; `undefined` if it is not in the range. */
  itemOf(text: string): Item | undefined {
    return this.#taken.itemOf(text);
  }

  itemAt(bit: number): Item {
    return this.#taken.itemAt(bit);
  }

  bitOf(item: Item): number | undefined {
    return this.#taken.indexOf(item);
  }

  textOf(item: Item): string {
    return String(this.canonical(item));
  }

  canonical(item: Item): Item {
    return this.itemOf(String(item)) ?? item;
  }

  #holdsWithout(item: Item): readonly Hold[] {
    return withoutHolds(this.#kept.holds, [this.textOf(item)]);
  }

  #after(
    items: readonly Item[],
    {
      taken = this.#taken,
      holds = this.#kept.holds,
    }: { readonly taken?: RangeAllocator<Item>; readonly holds?: readonly Hold[] },
  ): Range<Item> {
    const bits = items.flatMap((item) => this.bitOf(item) ?? []);
    const { strikes, unclaimed, ...others } = this.#kept;
    const next = {
      ...others,
      strikes: withoutStrikes(strikes, bits),
      holds,
      unclaimed: keepUnclaimed(unclaimed, (bit) => !bits.includes(bit)),
    };
    return new Range(next, taken);
  }
}

/**
 * Clears the strikes of the items. Copies the bitmaps only if one of the items has a strike: this is rare, and the bitmap of
 * a /12 has 128 KB.
 */
function withoutStrikes(strikes: LeakStrikes, bits: readonly number[]): LeakStrikes {
  const { once, twice } = strikes;
  if (!bits.some((bit) => hasBit(once, bit) || hasBit(twice, bit))) return strikes;
  const touched = fromBits(bits);
  return { ...strikes, once: subtract(once, touched), twice: subtract(twice, touched) };
}
