import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { Refusal } from '../allocator/refusal.ts';
import { fromBits, hasBit, subtract } from '../allocator/snapshot-bytes.ts';
import { defined } from '../util/values.ts';
import { type Hold, type HoldTerms, holdOn, withHold, withoutHolds } from './hold.ts';
import { keepUnclaimed, type LeakStrikes, type StoredRange, type Unclaimed, withUnclaimed } from './stored-range.ts';

/** The state of an item. `item` is in canonical form. */
export interface ItemState {
  readonly item: string;
  readonly taken: boolean;
  readonly hold?: Hold;
}

type TakenItems = Omit<RangeAllocator, 'allocate' | 'allocateNext' | 'release' | 'restore'>;

/** A taken item, in canonical form, and the range in which the item is taken. */
export interface Taken {
  readonly item: string;
  readonly range: Range;
}

/**
 * A range as an immutable value: each operation returns a new range. An operation on an item clears its strikes and its mark as
 * unclaimed, because both belong to a single allocation.
 */
export class Range {
  readonly taken: TakenItems;
  readonly #kept: Omit<StoredRange, 'data'>;

  /** `taken` has the bits of the taken items. The caller must not change `taken` afterwards. */
  constructor(kept: Omit<StoredRange, 'data'>, taken: TakenItems) {
    this.#kept = kept;
    this.taken = taken;
  }

  get content(): StoredRange {
    return { ...this.#kept, data: this.taken.snapshot().data };
  }

  get unclaimed(): readonly Unclaimed[] {
    return this.#kept.unclaimed;
  }

  take(item: string): Taken | Refusal {
    const taken = this.taken.copy();
    const refusal = taken.allocate(item);
    return refusal ?? { item: this.canonical(item), range: this.#after([item], { taken }) };
  }

  takeNext(): Taken | Refusal {
    const taken = this.taken.copy();
    const next = taken.allocateNext();
    return 'item' in next ? { item: next.item, range: this.#after([next.item], { taken }) } : next;
  }

  claim(item: string): Taken {
    return { item: this.canonical(item), range: this.#after([item], { holds: this.#holdsWithout(item) }) };
  }

  release(item: string): Range {
    const taken = this.taken.copy();
    taken.release(item);
    return this.#after([item], { taken, holds: this.#holdsWithout(item) });
  }

  hold(items: readonly string[], terms: HoldTerms): Range {
    const canonical = items.map((item) => this.canonical(item));
    return this.#after(items, { holds: withHold(this.#kept.holds, canonical, terms) });
  }

  /** Records items that admission allocated and that no pass has seen in the Service yet. `items`: the items of this review. */
  withUnclaimed(unclaimed: Unclaimed, items: readonly string[]): Range {
    const kept = this.#after(items, {}).#kept;
    return new Range({ ...kept, unclaimed: withUnclaimed(kept.unclaimed, unclaimed) }, this.taken);
  }

  holdOn(item: string): Hold | undefined {
    return holdOn(this.#kept.holds, this.canonical(item));
  }

  heldBy(requestId: string): readonly string[] {
    return this.#kept.holds
      .filter((hold) => hold.requestId === requestId)
      .flatMap(({ items }) => items.flatMap((item) => this.taken.itemOf(item) ?? []));
  }

  /** Returns the state of an item, or upstream's refusal if the item is not in the range. */
  stateOf(item: string): ItemState | Refusal {
    const hold = this.holdOn(item);
    const state = { item: this.canonical(item), taken: this.taken.has(item), ...defined({ hold }) };
    return this.taken.refusalIfOutside(item) ?? state;
  }

  /** Returns the canonical form of an item in the range, and any other text unchanged. */
  canonical(item: string): string {
    return this.taken.itemOf(item) ?? item;
  }

  #holdsWithout(item: string): readonly Hold[] {
    return withoutHolds(this.#kept.holds, [this.canonical(item)]);
  }

  #after(items: readonly string[], change: { readonly taken?: TakenItems; readonly holds?: readonly Hold[] }): Range {
    const { taken = this.taken, holds = this.#kept.holds } = change;
    const bits = items.flatMap((item) => this.taken.indexOf(item) ?? []);
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

/** Clears the strikes of the items. Copies the bitmaps (128 KB for a /12) only if an item has a strike, which is rare. */
function withoutStrikes(strikes: LeakStrikes, bits: readonly number[]): LeakStrikes {
  const { once, twice } = strikes;
  if (!bits.some((bit) => hasBit(once, bit) || hasBit(twice, bit))) return strikes;
  const touched = fromBits(bits);
  return { ...strikes, once: subtract(once, touched), twice: subtract(twice, touched) };
}
