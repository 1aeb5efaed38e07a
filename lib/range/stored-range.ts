import { equalBits, hasBit, type RangeSnapshot } from '../allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../cluster/cluster-spec.ts';
import { type Hold, sameHolds } from './hold.ts';

/**
 * The stored state of a range. Bitmaps are in the byte format of `data` and are numbered by the range in `range`.
 *
 * Invariants: a bit is below the number of items. An item that is held, unclaimed or struck is taken. No item has two
 * holds, none is unclaimed by two Services, and none that is held has a strike.
 */
export interface StoredRange extends RangeSnapshot {
  /** The allocator of the items in `data`. With `apiserver` it is a usage bitmap for maps, not a record. */
  readonly allocator: AllocatorOfRecord;
  /** The spec generation under which the range was saved; an older pass or allocation does not write. */
  readonly generation: number;
  readonly strikes: LeakStrikes;
  readonly holds: readonly Hold[];
  /** Items that admission allocated and no pass has seen in a Service. */
  readonly unclaimed: readonly Unclaimed[];
}

/** Items that were taken without a Service in one counted pass, or in two. The third frees them. */
export interface LeakStrikes {
  readonly once: Uint8Array;
  readonly twice: Uint8Array;
  /** The time and pass of the last strike, and the control plane whose Services it listed; absent if there was none. */
  readonly last?: { readonly atMs: number; readonly passId: string; readonly controlPlane?: string };
}

export const NO_STRIKES: LeakStrikes = { once: new Uint8Array(0), twice: new Uint8Array(0) };

/**
 * The items (as bits) that admission allocated for one Service, and that no pass has seen in that Service yet. A Service
 * that is created again gets the same items, so that one namespace cannot use up the range by repeating. Losing this
 * record is safe: the Service gets other items.
 */
export interface Unclaimed extends ServiceName {
  /** The number of reviews that were answered with these items. */
  readonly reviews: number;
  /** The items of the first review of that name. An existing Service may have them. */
  readonly first: readonly number[];
  /** The items of a later creation of that name: an existing Service has `first`. */
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

/** Returns the unclaimed items that are still taken and that no Service claims; `seen` has the claims. */
export function unseenOf(unclaimed: readonly Unclaimed[], data: Uint8Array, seen: Uint8Array): readonly Unclaimed[] {
  return keepUnclaimed(unclaimed, (bit) => hasBit(data, bit) && !hasBit(seen, bit));
}

/** Whether two stored ranges are the same, however their bits are padded. */
export function sameRange(one: StoredRange, other: StoredRange): boolean {
  return (
    one.range === other.range &&
    one.allocator === other.allocator &&
    one.generation === other.generation &&
    equalBits(one.data, other.data) &&
    equalBits(one.strikes.once, other.strikes.once) &&
    equalBits(one.strikes.twice, other.strikes.twice) &&
    sameLastStrike(one.strikes, other.strikes) &&
    sameHolds(one.holds, other.holds) &&
    JSON.stringify(one.unclaimed) === JSON.stringify(other.unclaimed)
  );
}

export function sameLastStrike({ last: one }: LeakStrikes, { last: other }: LeakStrikes): boolean {
  return one?.passId === other?.passId && one?.atMs === other?.atMs;
}
