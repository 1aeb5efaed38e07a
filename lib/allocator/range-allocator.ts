import type { AllocatorError } from './errors.ts';

/** The original's `RangeAllocation`: canonical text of the range, and the bits of what is taken (`snapshot-bytes.ts`). */
export interface RangeSnapshot {
  readonly range: string;
  readonly data: Uint8Array;
}

/** What IP ranges (`Item` is canonical address text) and port ranges (`Item` is a port) have in common. Not shared between passes. */
export interface RangeAllocator<Item> {
  /** Canonical text: `10.0.0.0/24`, `30000-32767`. */
  readonly spec: string;
  /** Usable items. */
  readonly max: number;
  /** Size of the low band that `allocateNext` touches last. */
  readonly reserved: number;
  readonly free: number;
  readonly used: number;
  /** Bit number of an item, `undefined` when it is not in the range. */
  indexOf(item: Item): number | undefined;
  itemAt(index: number): Item;
  /** The item that the text names; `undefined` when that is not in the range. */
  itemOf(text: string): Item | undefined;
  /** `undefined` when the item is now this caller's. */
  allocate(item: Item): AllocatorError | undefined;
  allocateNext(): { readonly item: Item } | AllocatorError;
  /** Releasing what is free, or not in the range, does nothing. */
  release(item: Item): void;
  has(item: Item): boolean;
  /** Taken items, ascending. */
  items(): Iterable<Item>;
  snapshot(): RangeSnapshot;
  restore(snapshot: RangeSnapshot): AllocatorError | undefined;
}

/** A uniform whole number in [0, below). `below` is at least 1. */
export type Pick = (below: number) => number;

/**
 * How many of the lowest items a dynamic allocation touches last, so that whoever wants a certain item finds one
 * (`calculateRangeOffset` in `pkg/registry/core/service/{ipallocator,portallocator}`).
 */
interface BandRule {
  /** Ranges of this size and smaller reserve nothing; larger ones at least this much. */
  readonly least: number;
  readonly most: number;
  /** One reserved of so many. */
  readonly step: number;
}

const IP_BAND: BandRule = { least: 16, most: 256, step: 16 };
const PORT_BAND: BandRule = { least: 16, most: 128, step: 32 };

/** `rangeSize` counts every address of the CIDR, the unusable ones too. */
export function reservedAddresses(rangeSize: number): number {
  return reserved(rangeSize, IP_BAND);
}

export function reservedPorts(ports: number): number {
  return reserved(ports, PORT_BAND);
}

function reserved(size: number, { least, most, step }: BandRule): number {
  return size <= least ? 0 : Math.min(Math.max(least, Math.floor(size / step)), most);
}
