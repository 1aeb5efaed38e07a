import { type Refusal, rangeIsFull } from './refusal.ts';
import { hasBit, popCount, type RangeSnapshot, trimmed } from './snapshot-bytes.ts';

/** Returns a uniformly distributed random integer from 0 to `below` - 1. `below` is at least 1. */
export type PickIndex = (below: number) => number;

/** The items of one range, their numbers, and the texts of its refusals. */
export interface RangeKind {
  /** The canonical text, such as `10.0.0.0/24` or `30000-32767`. */
  readonly spec: string;
  readonly max: number;
  /** The number of items in the reserved band. The band has the lowest items of the range, which `allocateNext` uses last. */
  readonly reserved: number;
  /** Returns the bit number of an item in any spelling; `undefined` if the item is not in the range. */
  indexOf(item: string): number | undefined;
  itemAt(index: number): string;
  notInRange(item: string): Refusal;
  alreadyAllocated(): Refusal;
}

/**
 * A bitmap of a range of cluster IPs or node ports (`pkg/registry/core/service/allocator/bitmap.go`). Items are texts:
 * addresses, or ports in decimal. Methods accept any spelling of an item, and return its canonical form.
 *
 * Invariant: `used` is the number of set bits. Restored data may have bits at `max` and above. These bits stay set and
 * are counted, so `free` can be negative.
 */
export class RangeAllocator {
  readonly spec: string;
  readonly max: number;
  readonly reserved: number;
  readonly #kind: RangeKind;
  readonly #pick: PickIndex;
  /** The bits in the format of a snapshot, with leading zero bytes. Empty until a change or restore: a new /8 takes no memory. */
  #data = new Uint8Array(0);
  #used = 0;

  constructor(kind: RangeKind, pick: PickIndex) {
    const { spec, max, reserved } = kind;
    this.spec = spec;
    this.max = max;
    this.reserved = reserved;
    this.#kind = kind;
    this.#pick = pick;
  }

  copy(): RangeAllocator {
    const copy = new RangeAllocator(this.#kind, this.#pick);
    copy.#data = this.#data.slice();
    copy.#used = this.#used;
    return copy;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.max - this.#used;
  }

  indexOf(item: string): number | undefined {
    return this.#kind.indexOf(item);
  }

  itemAt(index: number): string {
    return this.#kind.itemAt(index);
  }

  /** Returns the canonical form of an item; `undefined` if the item is not in the range. */
  itemOf(text: string): string | undefined {
    const index = this.indexOf(text);
    return index === undefined ? undefined : this.itemAt(index);
  }

  refusalIfOutside(item: string): Refusal | undefined {
    return this.indexOf(item) === undefined ? this.#kind.notInRange(item) : undefined;
  }

  /** Allocates an item. Returns `undefined` if it succeeds. */
  allocate(item: string): Refusal | undefined {
    const index = this.indexOf(item);
    if (index === undefined) return this.#kind.notInRange(item);
    if (hasBit(this.#data, index)) return this.#kind.alreadyAllocated();
    this.#take(index);
    return undefined;
  }

  /** Allocates a free item of the dynamic band, or else of the reserved band. The search begins at a random position. */
  allocateNext(): { readonly item: string } | Refusal {
    const index =
      this.free <= 0 ? undefined : (this.#freeIn(this.reserved, this.max) ?? this.#freeIn(0, this.reserved));
    if (index === undefined) return rangeIsFull();
    this.#take(index);
    return { item: this.itemAt(index) };
  }

  release(item: string): void {
    const index = this.indexOf(item);
    if (index === undefined || !hasBit(this.#data, index)) return;
    this.#flip(index);
    this.#used--;
  }

  has(item: string): boolean {
    const index = this.indexOf(item);
    return index !== undefined && hasBit(this.#data, index);
  }

  snapshot(): RangeSnapshot {
    return { range: this.spec, data: trimmed(this.#data) };
  }

  /** Replaces the allocated items. `snapshot` must use the bit numbers of this range. */
  restore(snapshot: Uint8Array): void {
    const data = trimmed(snapshot);
    this.#data = new Uint8Array(Math.max(data.length, Math.ceil(this.max / 8)));
    this.#data.set(data, this.#data.length - data.length);
    this.#used = popCount(data);
  }

  #take(index: number): void {
    if (this.#data.length === 0) this.#data = new Uint8Array(Math.ceil(this.max / 8));
    this.#flip(index);
    this.#used++;
  }

  #flip(bit: number): void {
    const index = this.#data.length - 1 - (bit >>> 3);
    this.#data[index] = (this.#data[index] ?? 0) ^ (1 << (bit & 7));
  }

  #freeIn(low: number, high: number): number | undefined {
    if (low >= high) return undefined;
    const start = low + this.#pick(high - low);
    return this.#firstFree(start, high) ?? this.#firstFree(low, start);
  }

  #firstFree(from: number, end: number): number | undefined {
    let bit = from;
    while (bit < end && hasBit(this.#data, bit)) bit += 1;
    return bit < end ? bit : undefined;
  }
}

/** Returns the size of the reserved band (`calculateRangeOffset`) of a CIDR. `rangeSize` includes unusable addresses. */
export function reservedAddresses(rangeSize: number): number {
  return reserved(rangeSize, { most: 256, step: 16 });
}

export function reservedPorts(ports: number): number {
  return reserved(ports, { most: 128, step: 32 });
}

/** A range of at most this size reserves no item. A larger range reserves at least this many items. */
const LEAST_RESERVED = 16;

function reserved(size: number, { most, step }: { readonly most: number; readonly step: number }): number {
  return size <= LEAST_RESERVED ? 0 : Math.min(Math.max(LEAST_RESERVED, Math.floor(size / step)), most);
}
