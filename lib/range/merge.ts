import { isDeepStrictEqual } from 'node:util';
import { fromBits, intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { type Hold, holdsByItem, sameTerms, withoutHolds } from './hold.ts';
import { type StoredRange, unseenOf } from './stored-range.ts';

/** The decision of a pass about a range. Bit numbers are positions in the range of `next`. */
export interface RangeDecision {
  readonly next: StoredRange;
  readonly proved: Uint8Array;
  readonly freed: Uint8Array;
  readonly ended: readonly EndedHold[];
  /** Returns the bit of a held item; `undefined` if the item is not in the range. */
  readonly bitOf: (text: string) => number | undefined;
}

export interface EndedHold {
  readonly item: string;
  readonly hold: Hold;
  /** The bit of the item if the end of the hold frees the item; otherwise `undefined`. */
  readonly freedBit: number | undefined;
}

/**
 * Returns the range to save if another writer has changed it since the pass read it. `newest` is the current range.
 * Every item that a listed Service claims is taken. The decisions about leaks apply only to items with unchanged strikes:
 * an allocation clears the strikes of its item. A hold ends only if it has not changed.
 * @param read the range that the pass read; `undefined` if no range was stored
 * @returns `undefined` if the newest range has another range or allocator, or was saved for a newer spec
 */
export function mergeOntoNewest(
  newest: StoredRange,
  read: StoredRange | undefined,
  decided: RangeDecision,
): StoredRange | undefined {
  const { next, proved, ended, bitOf } = decided;
  if (newest.generation > next.generation || newest.allocator !== next.allocator || newest.range !== next.range) {
    return undefined;
  }

  // An item gets at most one strike per interval, so strikes of another pass end this judgement.
  const isCurrent = read?.range === newest.range && isDeepStrictEqual(read.strikes.last, newest.strikes.last);
  const judged = isCurrent ? withJudgement(newest, read, decided) : newest;
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
  // An item that got a hold after the pass read the range gets no strike.
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

/** Applies the pass's decisions about leaks, except to items whose strikes have changed since the read. */
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
