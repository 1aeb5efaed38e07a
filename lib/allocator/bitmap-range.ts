import { AllocationBitmap } from './bitmap.ts';
import { type AllocatorError, rangeIsFull } from './errors.ts';
import type { Pick, RangeAllocator, RangeSnapshot } from './range-allocator.ts';

/** What tells one kind of range from another: its items, their numbers, and the words of its refusals. */
export interface RangeKind<Item> {
  /** Canonical text. */
  readonly spec: string;
  /** Usable items. */
  readonly max: number;
  readonly reserved: number;
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** What the text names, in this range or not. */
  parse(text: string): Item;
  notInRange(item: Item): AllocatorError;
  alreadyAllocated(): AllocatorError;
  /** Why a snapshot of the range of that text is not one of this range. */
  mismatch(range: string): AllocatorError | undefined;
}

/** A range of items over a bitmap: what IP ranges and port ranges have in common. */
export class BitmapRange<Item> implements RangeAllocator<Item> {
  readonly #kind: RangeKind<Item>;
  readonly #bitmap: AllocationBitmap;

  constructor(kind: RangeKind<Item>, pick: Pick) {
    const { spec, max, reserved } = kind;
    this.#kind = kind;
    this.#bitmap = new AllocationBitmap({ spec, max, reserved, pick });
  }

  get spec(): string {
    return this.#kind.spec;
  }

  get max(): number {
    return this.#bitmap.max;
  }

  get reserved(): number {
    return this.#bitmap.reserved;
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

  itemOf(text: string): Item | undefined {
    const index = this.indexOf(this.#kind.parse(text));
    return index === undefined ? undefined : this.itemAt(index);
  }

  allocate(item: Item): AllocatorError | undefined {
    const index = this.indexOf(item);
    if (index === undefined) return this.#kind.notInRange(item);
    const taken = this.#bitmap.allocate(index);
    if (taken === true) return undefined;
    return taken === false ? this.#kind.alreadyAllocated() : taken;
  }

  allocateNext(): { readonly item: Item } | AllocatorError {
    const index = this.#bitmap.allocateNext();
    return index === undefined ? rangeIsFull() : { item: this.itemAt(index) };
  }

  release(item: Item): void {
    const index = this.indexOf(item);
    if (index !== undefined) this.#bitmap.release(index);
  }

  has(item: Item): boolean {
    const index = this.indexOf(item);
    return index !== undefined && this.#bitmap.has(index);
  }

  *items(): Generator<Item, void, undefined> {
    for (const index of this.#bitmap.items()) yield this.itemAt(index);
  }

  snapshot(): RangeSnapshot {
    return this.#bitmap.snapshot();
  }

  restore({ range, data }: RangeSnapshot): AllocatorError | undefined {
    return this.#kind.mismatch(range) ?? this.#bitmap.restore({ range: this.spec, data });
  }
}
