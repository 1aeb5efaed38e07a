import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { type Hold, holdsByItem } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';

/** An item that was held when the range was read. */
export interface HeldItem<Item> {
  /** As the hold names it. */
  readonly text: string;
  readonly hold: Hold;
  /** Where it is in the range that the spec asks for; undefined when it is not in that. */
  readonly place: { readonly item: Item; readonly bit: number } | undefined;
}

/** Held items, and which Services claim them. */
export class HeldItems<Item> {
  readonly #range: RangeAllocator<Item>;
  readonly #items: readonly HeldItem<Item>[];
  readonly #bits: ReadonlySet<number>;
  readonly #claims = new Map<number, ServiceClaim>();

  /** `range` is the one that the spec asks for. */
  constructor(holds: readonly Hold[], range: RangeAllocator<Item>) {
    this.#range = range;
    this.#items = [...holdsByItem(holds)].map(([text, hold]) => ({ text, hold, place: placeOf(text, range) }));
    this.#bits = new Set(this.#items.flatMap(({ place }) => place?.bit ?? []));
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  [Symbol.iterator](): Iterator<HeldItem<Item>> {
    return this.#items[Symbol.iterator]();
  }

  /** Remembers the claim when it is on something held. The claim is the first and good. */
  claimed(item: Item, by: ServiceClaim): void {
    const bit = this.#range.indexOf(item);
    if (bit !== undefined && this.#bits.has(bit)) this.#claims.set(bit, by);
  }

  /** Their bits in another range, as far as they are in that. */
  bitsIn(range: RangeAllocator<Item>): number[] {
    return this.#items.flatMap(({ text }) => bitOf(range, text) ?? []);
  }

  claimOn({ place }: HeldItem<Item>): ServiceClaim | undefined {
    return place && this.#claims.get(place.bit);
  }
}

export function bitOf<Item>(range: RangeAllocator<Item>, text: string): number | undefined {
  const item = range.itemOf(text);
  return item === undefined ? undefined : range.indexOf(item);
}

function placeOf<Item>(text: string, range: RangeAllocator<Item>): HeldItem<Item>['place'] {
  const bit = bitOf(range, text);
  return bit === undefined ? undefined : { item: range.itemAt(bit), bit };
}
