import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { PickIndex, RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { bitsOf, type RangeSnapshot } from '../../lib/allocator/snapshot-bytes.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';

/** The time after the end of a hold at which a pass frees its items. The margin covers clocks that differ. */
export const HOLD_END_MARGIN_MS = 5_000;
/** The time after which a pass frees the items of a request that set no end of its hold. */
export const HOLD_MS = 15 * 60_000 + HOLD_END_MARGIN_MS;

/** Returns an empty range. Throws if the text does not parse. */
export function ipRange(cidr: string): RangeAllocator {
  return made(ipRangeOf(cidr, seededPick(1)));
}

/** Returns an empty range. Throws if the text does not parse. */
export function portRange(text: string): RangeAllocator {
  return made(portRangeOf(text, seededPick(1)));
}

/** Allocates all free items and returns them in the order of allocation. */
export function allocateUntilFull(range: RangeAllocator): string[] {
  const items: string[] = [];
  for (let next = range.allocateNext(); 'item' in next; next = range.allocateNext()) items.push(next.item);
  return items;
}

export function itemsOf(range: RangeAllocator): string[] {
  return bitsOf(range.snapshot().data).map((bit) => range.itemAt(bit));
}

export function storedRange(fields: Partial<StoredRange> & Pick<StoredRange, 'range' | 'data'>): StoredRange {
  const none = new Uint8Array(0);
  const strikes = { once: none, twice: none };
  return { allocator: 'table', generation: 1, strikes, holds: [], unclaimed: [], ...fields };
}

/** Returns the items of a saved range in ascending order. The range may have bits beyond its last item. */
export function itemsIn({ range, data }: RangeSnapshot): string[] {
  const empty = range.includes('/') ? ipRange(range) : portRange(range);
  return bitsOf(data).map((bit) => empty.itemAt(bit));
}

/** Returns the value. Throws if an allocator refused it. */
export function made<Value>(value: Value | Refusal): Value {
  if (isRefused(value)) throw value;
  return value;
}

/** Returns a picker that gives the same numbers for the same seed (the mulberry32 generator). */
export function seededPick(seed: number): PickIndex {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Picks the lowest free item of the band. */
export const pickLowest: PickIndex = () => 0;

/** Returns a picker that gives `numbers` in turn, modulo the given bound, and records the bounds. */
export function scriptedPick(numbers: readonly number[]): { readonly pick: PickIndex; readonly asked: number[] } {
  const asked: number[] = [];
  const pick: PickIndex = (below) => {
    const next = numbers[asked.length % numbers.length] ?? 0;
    asked.push(below);
    return next % below;
  };
  return { pick, asked };
}
