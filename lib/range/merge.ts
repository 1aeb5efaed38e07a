import { fromBits, intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { type Hold, holdsByItem, sameTerms, withoutHolds } from './hold.ts';
import { type StoredRange, sameLastStrike, unseenOf } from './stored-range.ts';

/** The decision of a pass about a range. Bit numbers are those of the range `next`. */
export interface RangeDecision {
  readonly next: StoredRange;
  readonly proved: Uint8Array;
  readonly freed: Uint8Array;
  readonly ended: readonly EndedHold[];
  /** Returns the bit of a held item; undefined if it is not in the range. */
  readonly bitOf: (text: string) => number | undefined;
}

export interface EndedHold {
  readonly item: string;
  readonly hold: Hold;
  /** The bit of the item that is freed when its hold ends; undefined if no item is freed. */
  readonly freedBit: number | undefined;
}

/** The reason why the decision of a pass cannot be merged onto the newest stored range. */
export type MergeRefusal = 'otherRange' | 'newerSpec' | 'otherAllocator';

/**
 * Returns the range to save if it was written after the pass read it. The `newest` range gets every bit that the list
 * proves, and the leak decisions for items whose strikes are unchanged since the `read`. An allocation clears the
 * strikes of its item, so no item that was allocated since the read is freed. A hold ends only if it is unchanged;
 * other holds of the newest range continue.
 * @param read undefined if nothing was stored then
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

/**
 * Returns false if the range has changed, or another pass has struck since the read: each interval adds at most one
 * strike.
 */
function isJudgementCurrent(newest: StoredRange, read: StoredRange | undefined): read is StoredRange {
  return read !== undefined && read.range === newest.range && sameLastStrike(read.strikes, newest.strikes);
}

/** Frees and strikes as the pass decided, except for items whose strikes have changed since its read. */
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
