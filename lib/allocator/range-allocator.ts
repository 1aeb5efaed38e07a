import { AllocationBitmap, type Pick } from './bitmap.ts';
import { type Refusal, rangeIsFull } from './refusal.ts';
import type { RangeSnapshot } from './snapshot-bytes.ts';

/** The properties of one kind of range: its items, their numbers, and the texts of its refusals. */
export interface RangeKind<Item> {
  /** Canonical text: `10.0.0.0/24`, `30000-32767`. */
  readonly spec: string;
  /** The number of usable items. */
  readonly max: number;
  /** The size of the low band that `allocateNext` uses last. */
  readonly reserved: number;
  /** Returns the bit number of an item, `undefined` if it is not in the range. */
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** Parses an item, in this range or not. */
  parse(text: string): Item;
  notInRange(item: Item): Refusal;
  alreadyAllocated(): Refusal;
  /** Returns the reason why a snapshot of that range does not fit this one. */
  mismatch(range: string): Refusal | undefined;
}

/**
 * A range of items over a bitmap: cluster IPs, whose items are canonical address texts, or node ports. Not shared
 * between passes.
 */
export class RangeAllocator<Item> {
  readonly spec: string;
  readonly max: number;
  readonly reserved: number;
  readonly #kind: RangeKind<Item>;
  readonly #pick: Pick;
  readonly #bitmap: AllocationBitmap;

  constructor(kind: RangeKind<Item>, pick: Pick, bitmap?: AllocationBitmap) {
    const { spec, max, reserved } = kind;
    this.spec = spec;
    this.max = max;
    this.reserved = reserved;
    this.#kind = kind;
    this.#pick = pick;
    this.#bitmap = bitmap ?? new AllocationBitmap({ max, reserved, pick });
  }

  copy(): RangeAllocator<Item> {
    return new RangeAllocator(this.#kind, this.#pick, this.#bitmap.copy());
  }

  get free(): number {
    return this.#bitmap.free;
  }

  get used(): number {
    return this.#bitmap.used;
  }

  indexOf(item: Item): number | undefined {
    return this.#kind.indexOf(item);
  }

  itemAt(index: number): Item {
    return this.#kind.itemAt(index);
  }

  /** Parses an item; `undefined` if it is not in the range. */
  itemOf(text: string): Item | undefined {
    const index = this.indexOf(this.#kind.parse(text));
    return index === undefined ? undefined : this.itemAt(index);
  }

  /** Returns `undefined` if the item is now allocated to the caller. */
  allocate(item: Item): Refusal | undefined {
    const index = this.indexOf(item);
    if (index === undefined) return this.#kind.notInRange(item);
    return this.#bitmap.allocate(index) ? undefined : this.#kind.alreadyAllocated();
  }

  allocateNext(): { readonly item: Item } | Refusal {
    const index = this.#bitmap.allocateNext();
    return index === undefined ? rangeIsFull() : { item: this.itemAt(index) };
  }

  /** Releasing a free item, or one outside the range, has no effect. */
  release(item: Item): void {
    const index = this.indexOf(item);
    if (index !== undefined) this.#bitmap.release(index);
  }

  has(item: Item): boolean {
    const index = this.indexOf(item);
    return index !== undefined && this.#bitmap.has(index);
  }

  /** Returns the allocated items, ascending. */
  *items(): Generator<Item, void, undefined> {
    for (const index of this.#bitmap.items()) yield this.itemAt(index);
  }

  snapshot(): RangeSnapshot {
    return { range: this.spec, data: this.#bitmap.snapshot() };
  }

  /** Changes nothing if the snapshot belongs to another range. */
  restore({ range, data }: RangeSnapshot): Refusal | undefined {
    const mismatch = this.#kind.mismatch(range);
    if (mismatch === undefined) this.#bitmap.restore(data);
    return mismatch;
  }
}
