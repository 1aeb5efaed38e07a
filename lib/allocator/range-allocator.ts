import { type Refusal, rangeIsFull } from './refusal.ts';
import { byteOf, hasBit, popCount, type RangeSnapshot, trimmed } from './snapshot-bytes.ts';

/** Returns a uniform random integer in [0, below). `below` is at least 1. */
export type PickIndex = (below: number) => number;

/** The properties of one kind of range: its items, their numbers, and the texts of its refusals. */
export interface RangeKind<Item> {
  /** Canonical text: `10.0.0.0/24`, `30000-32767`. */
  readonly spec: string;
  readonly max: number;
  /** The size of the low band that `allocateNext` uses last, at most `max`. */
  readonly reserved: number;
  /** Returns the bit number of an item, `undefined` if it is not in the range. */
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** Parses an item, in this range or not. */
  parse(text: string): Item;
  notInRange(item: Item): Refusal;
  alreadyAllocated(): Refusal;
}

/**
 * A range of cluster IPs, whose items are canonical address texts, or of node ports, over a bitmap
 * (`pkg/registry/core/service/allocator/bitmap.go`). Not shared between passes.
 *
 * Invariant: `used` is the number of set bits. Restored data may have bits at `max` and above: they are kept and
 * counted, so that `free` can be negative.
 */
export class RangeAllocator<Item> {
  readonly spec: string;
  readonly max: number;
  readonly reserved: number;
  readonly #kind: RangeKind<Item>;
  readonly #pick: PickIndex;
  /** A snapshot, padded. It has no memory until a bit is set, so an unused /8 costs nothing. */
  #data = new Uint8Array(0);
  #used = 0;

  constructor(kind: RangeKind<Item>, pick: PickIndex) {
    const { spec, max, reserved } = kind;
    this.spec = spec;
    this.max = max;
    this.reserved = reserved;
    this.#kind = kind;
    this.#pick = pick;
  }

  copy(): RangeAllocator<Item> {
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

  indexOf(item: Item): number | undefined {
    return this.#kind.indexOf(item);
  }

  itemAt(index: number): Item {
    return this.#kind.itemAt(index);
  }

  /** Returns the bit number of the item that a text names; `undefined` if it is not in the range. */
  bitOf(text: string): number | undefined {
    return this.indexOf(this.#kind.parse(text));
  }

  /** Returns the canonical item that a text names; `undefined` if it is not in the range. */
  itemOf(text: string): Item | undefined {
    const index = this.bitOf(text);
    return index === undefined ? undefined : this.itemAt(index);
  }

  /** Returns `undefined` if the item is now allocated to the caller. */
  allocate(item: Item): Refusal | undefined {
    const index = this.indexOf(item);
    if (index === undefined) return this.#kind.notInRange(item);
    if (hasBit(this.#data, index)) return this.#kind.alreadyAllocated();
    this.#take(index);
    return undefined;
  }

  /**
   * Allocates the first free item at or after a random start, cyclically: first in the band above the reserved one,
   * then in the reserved one.
   */
  allocateNext(): { readonly item: Item } | Refusal {
    const index =
      this.free <= 0 ? undefined : (this.#freeIn(this.reserved, this.max) ?? this.#freeIn(0, this.reserved));
    if (index === undefined) return rangeIsFull();
    this.#take(index);
    return { item: this.itemAt(index) };
  }

  /** Releases an item. Has no effect on a free item or one outside the range. */
  release(item: Item): void {
    const index = this.indexOf(item);
    if (index === undefined || !hasBit(this.#data, index)) return;
    this.#flip(index);
    this.#used--;
  }

  has(item: Item): boolean {
    const index = this.indexOf(item);
    return index !== undefined && hasBit(this.#data, index);
  }

  snapshot(): RangeSnapshot {
    return { range: this.spec, data: trimmed(this.#data) };
  }

  /** Replaces the allocated items. `snapshot` is numbered by this range. */
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

  /** An empty band draws no random number. */
  #freeIn(low: number, high: number): number | undefined {
    if (low >= high) return undefined;
    const start = low + this.#pick(high - low);
    return this.#firstFree(start, high) ?? this.#firstFree(low, start);
  }

  /** A byte of eight allocated items is skipped at once. */
  #firstFree(from: number, end: number): number | undefined {
    let bit = from;
    while (bit < end && hasBit(this.#data, bit)) bit += bit % 8 === 0 && byteOf(this.#data, bit / 8) === 0xff ? 8 : 1;
    return bit < end ? bit : undefined;
  }
}

/**
 * The rule for the lowest items, which a dynamic allocation uses last, so that a certain item can still be requested
 * (`calculateRangeOffset` in `pkg/registry/core/service/{ipallocator,portallocator}`).
 */
interface BandRule {
  /** Ranges of at most this size reserve nothing; larger ones at least this much. */
  readonly least: number;
  readonly most: number;
  /** One in this many items is reserved. */
  readonly step: number;
}

const IP_BAND: BandRule = { least: 16, most: 256, step: 16 };
const PORT_BAND: BandRule = { least: 16, most: 128, step: 32 };

/** `rangeSize` includes the unusable addresses of the CIDR. */
export function reservedAddresses(rangeSize: number): number {
  return reserved(rangeSize, IP_BAND);
}

export function reservedPorts(ports: number): number {
  return reserved(ports, PORT_BAND);
}

function reserved(size: number, { least, most, step }: BandRule): number {
  return size <= least ? 0 : Math.min(Math.max(least, Math.floor(size / step)), most);
}
