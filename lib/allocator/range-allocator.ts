import { AllocationBitmap, type Pick } from './bitmap.ts';
import { type AllocatorError, rangeIsFull } from './errors.ts';
import type { RangeSnapshot } from './snapshot-bytes.ts';

/** How one kind of range differs from another: its items, their numbers, and the words of its refusals. */
export interface RangeKind<Item> {
  /** Canonical text: `10.0.0.0/24`, `30000-32767`. */
  readonly spec: string;
  /** Usable items. */
  readonly max: number;
  /** Size of the low band that `allocateNext` uses last. */
  readonly reserved: number;
  /** Bit number of an item, `undefined` when it is not in the range. */
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** The item that the text names, in this range or not. */
  parse(text: string): Item;
  notInRange(item: Item): AllocatorError;
  alreadyAllocated(): AllocatorError;
  /** Why a snapshot of the range of that text is not one of this range. */
  mismatch(range: string): AllocatorError | undefined;
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

  constructor(kind: RangeKind<Item>, pick: Pick) {
    const { spec, max, reserved } = kind;
    this.spec = spec;
    this.max = max;
    this.reserved = reserved;
    this.#kind = kind;
    this.#pick = pick;
    this.#bitmap = new AllocationBitmap({ max, reserved, pick });
  }

  copy(): RangeAllocator<Item> {
    const copy = new RangeAllocator(this.#kind, this.#pick);
    copy.#bitmap.restore(this.#bitmap.snapshot());
    return copy;
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

  /** The item that the text names; `undefined` when that is not in the range. */
  itemOf(text: string): Item | undefined {
    const index = this.indexOf(this.#kind.parse(text));
    return index === undefined ? undefined : this.itemAt(index);
  }

  /** `undefined` when the item is now this caller's. */
  allocate(item: Item): AllocatorError | undefined {
    const index = this.indexOf(item);
    if (index === undefined) return this.#kind.notInRange(item);
    return this.#bitmap.allocate(index) ? undefined : this.#kind.alreadyAllocated();
  }

  allocateNext(): { readonly item: Item } | AllocatorError {
    const index = this.#bitmap.allocateNext();
    return index === undefined ? rangeIsFull() : { item: this.itemAt(index) };
  }

  /** Releasing what is free, or not in the range, does nothing. */
  release(item: Item): void {
    const index = this.indexOf(item);
    if (index !== undefined) this.#bitmap.release(index);
  }

  has(item: Item): boolean {
    const index = this.indexOf(item);
    return index !== undefined && this.#bitmap.has(index);
  }

  /** Allocated items, ascending. */
  *items(): Generator<Item, void, undefined> {
    for (const index of this.#bitmap.items()) yield this.itemAt(index);
  }

  snapshot(): RangeSnapshot {
    return { range: this.spec, data: this.#bitmap.snapshot() };
  }

  /** Keeps what it has when the snapshot is of another range. */
  restore({ range, data }: RangeSnapshot): AllocatorError | undefined {
    const mismatch = this.#kind.mismatch(range);
    if (mismatch === undefined) this.#bitmap.restore(data);
    return mismatch;
  }
}
