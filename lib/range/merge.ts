import { fromBits, intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { type Hold, holdsByItem, sameTerms, withoutHolds } from './hold.ts';
import { type StoredRange, sameLastStrike, unseenOf } from './stored-range.ts';

/** What a pass decided about a range. Bits are numbered by `next`. */
export interface RangeDecision {
  readonly next: StoredRange;
  /** What the Services prove to be taken. */
  readonly proved: Uint8Array;
  readonly freed: Uint8Array;
  readonly ended: readonly EndedHold[];
  /** The bit of a held item; undefined when it is not in the range. */
  readonly bitOf: (text: string) => number | undefined;
}

/** A hold that a pass ends on one item. */
export interface EndedHold {
  /** As the hold names it. */
  readonly item: string;
  /** As the pass read it. */
  readonly hold: Hold;
  /** The number of the item that is freed with it; undefined when none is. */
  readonly freedBit: number | undefined;
}

/** Why the decision of a pass cannot be put onto the newest stored range. */
export type MergeRefusal = 'otherRange' | 'newerSpec' | 'otherAllocator';

/**
 * Returns what to save when the range was written since the pass read it. Onto the `newest` goes every bit that the list
 * proves, and the judgement on leaks of items whose strikes are as the pass `read` them. An allocation clears the strikes
 * of its item, so that no item that was allocated since the read is freed. A hold ends when it is still the one that the
 * pass read; every other hold of the newest continues.
 * @param read undefined when nothing was stored then
 */
export function mergeOntoNewest(
  newest: StoredRange,
  read: StoredRange | undefined,
  decided: RangeDecision,
): StoredRange | MergeRefusal {
  const { next, proved, ended, bitOf } = decided;
  if (newest.generation > next.generation) return 'newerSpec';
  if (newest.allocator !== next.allocator) return 'otherAllocator';
  if (newest.range !== next.range) return 'otherRange';

  const judged = isJudgementCurrent(newest, read) ? withJudgement(newest, read, decided) : newest;
  const now = holdsByItem(newest.holds);
  const ending = ended.filter(({ item, hold }) => {
    const still = now.get(item);
    return still !== undefined && sameTerms(still, hold);
  });
  const endedItems = ending.map(({ item }) => item);
  const holds = withoutHolds(newest.holds, endedItems);
  const freedWithHold = fromBits(ending.flatMap(({ freedBit }) => freedBit ?? []));
  const data = union(subtract(judged.data, freedWithHold), proved);
  const held = fromBits([...holdsByItem(holds).keys()].flatMap((item) => bitOf(item) ?? []));
  // A hold may be younger than the read, on an item that the pass struck.
  const strikable = subtract(subtract(data, proved), held);
  const { once, twice } = judged.strikes;
  return {
    ...newest,
    generation: next.generation,
    data,
    strikes: { ...judged.strikes, once: intersect(once, strikable), twice: intersect(twice, strikable) },
    holds,
    unclaimed: unseenOf(newest.unclaimed, data, proved),
  };
}

/** Not when the range was another, and not when another pass struck since: that was the strike of this interval. */
function isJudgementCurrent(newest: StoredRange, read: StoredRange | undefined): read is StoredRange {
  return read !== undefined && read.range === newest.range && sameLastStrike(read.strikes, newest.strikes);
}

/** Frees and strikes as the pass decided, but for items whose strikes have changed since its read. */
function withJudgement(
  newest: StoredRange,
  read: StoredRange,
  { next, freed }: RangeDecision,
): Pick<StoredRange, 'data' | 'strikes'> {
  const changed = union(
    difference(newest.strikes.once, read.strikes.once),
    difference(newest.strikes.twice, read.strikes.twice),
  );
  const merged = (now: Uint8Array, decided: Uint8Array) => union(intersect(now, changed), subtract(decided, changed));
  return {
    data: subtract(newest.data, subtract(freed, changed)),
    strikes: {
      ...next.strikes,
      once: merged(newest.strikes.once, next.strikes.once),
      twice: merged(newest.strikes.twice, next.strikes.twice),
    },
  };
}

function difference(one: Uint8Array, other: Uint8Array): Uint8Array {
  return union(subtract(one, other), subtract(other, one));
}
