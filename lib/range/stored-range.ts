import { isDeepStrictEqual } from 'node:util';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { PickIndex, RangeAllocator } from '../allocator/range-allocator.ts';
import type { Refusal } from '../allocator/refusal.ts';
import { hasBit, type RangeSnapshot } from '../allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../spec/spec-ranges.ts';
import { type Hold, sameHolds } from './hold.ts';

/**
 * The stored state of a range. All bitmaps have the byte format of `data`. A bit number is the position of an item in the range
 * that the field `range` contains.
 *
 * Invariants: bits are below the number of items. An item is taken if it is held, is unclaimed or has a strike. An item has at
 * most one hold, and is in at most one entry of `unclaimed`. A held item has no strike.
 */
export interface StoredRange extends RangeSnapshot {
  /** The allocator of the items in `data`. With `apiserver`, `data` only shows usage; nothing is allocated from it. */
  readonly allocator: AllocatorOfRecord;
  /** The generation of the spec when the range was saved. A pass or allocation with an older generation does not write. */
  readonly generation: number;
  readonly strikes: LeakStrikes;
  readonly holds: readonly Hold[];
  /** The items that admission allocated and that no pass has seen in a Service. */
  readonly unclaimed: readonly Unclaimed[];
}

/** The items with one strike and the items with two strikes. A third strike frees an item. */
export interface LeakStrikes {
  readonly once: Uint8Array;
  readonly twice: Uint8Array;
  /** The time and pass of the last strike, and the control plane whose Services the pass listed. */
  readonly last?: { readonly atMs: number; readonly passId: string; readonly controlPlane?: string };
}

export const NO_STRIKES: LeakStrikes = { once: new Uint8Array(0), twice: new Uint8Array(0) };

/**
 * The items that admission allocated for one Service, as bits, and that no pass has seen in this Service yet. If its creation
 * is reviewed repeatedly, the reviews share `later`, so that repeated creation does not use up the range.
 */
export interface Unclaimed extends ServiceName {
  /** The number of reviews that were answered with these items. */
  readonly reviews: number;
  /** Items from the first review of the Service's creation and from reviews of its updates. The Service may have these items. */
  readonly first: readonly number[];
  /** Items from repeated reviews of the Service's creation. Further reviews of its creation get these items first. */
  readonly later: readonly number[];
}

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

export function unclaimedOf(unclaimed: readonly Unclaimed[], { namespace, name }: ServiceName): Unclaimed {
  const found = unclaimed.find((each) => each.name === name && each.namespace === namespace);
  return found ?? { namespace, name, reviews: 0, first: [], later: [] };
}

export function withUnclaimed(unclaimed: readonly Unclaimed[], next: Unclaimed): readonly Unclaimed[] {
  const others = unclaimed.filter(({ namespace, name }) => name !== next.name || namespace !== next.namespace);
  return next.first.length + next.later.length === 0 ? others : [...others, next];
}

export function keepUnclaimed(unclaimed: readonly Unclaimed[], isKept: (bit: number) => boolean): readonly Unclaimed[] {
  return unclaimed.flatMap((each) => {
    const [first, later] = [each.first.filter(isKept), each.later.filter(isKept)];
    if (first.length + later.length === 0) return [];
    return first.length + later.length === each.first.length + each.later.length ? each : { ...each, first, later };
  });
}

export function countUnclaimed(unclaimed: readonly Unclaimed[]): number {
  return unclaimed.reduce((sum, { first, later }) => sum + first.length + later.length, 0);
}

/** Returns the unclaimed items that are still taken and that no Service claims. `seen` contains the claimed items. */
export function unseenOf(unclaimed: readonly Unclaimed[], data: Uint8Array, seen: Uint8Array): readonly Unclaimed[] {
  return keepUnclaimed(unclaimed, (bit) => hasBit(data, bit) && !hasBit(seen, bit));
}

/** Returns a range without allocated items, or upstream's refusal. `pick` chooses the items that are not requested by value. */
export function emptyRange(key: RangeKey, text: string, pick: PickIndex = () => 0): RangeAllocator | Refusal {
  return key === RANGE_KEYS.nodePorts ? portRangeOf(text, pick) : ipRangeOf(text, pick);
}

/** Returns whether two stored ranges are equal. The order of holds does not count. */
export function sameRange(one: StoredRange, other: StoredRange): boolean {
  return sameHolds(one.holds, other.holds) && isDeepStrictEqual({ ...one, holds: [] }, { ...other, holds: [] });
}
