import { fromBits, intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { holdsByItem, sameTerms, withoutHolds } from '../cluster/hold.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import { type Comparison, sameLastStrike, unseenOf } from './compare-range.ts';

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
  decided: Pick<Comparison, 'next' | 'proved' | 'freed' | 'ended' | 'bitOf'>,
): StoredRange | MergeRefusal {
  const { next, proved } = decided;
  if (newest.generation > next.generation) return 'newerSpec';
  if (newest.allocator !== next.allocator) return 'otherAllocator';
  if (newest.range !== next.range) return 'otherRange';

  const judged = isJudgementCurrent(newest, read) ? withJudgement(newest, read, decided) : newest;
  return withProved(withHoldsEnded(judged, decided), next.generation, proved);
}

/** Frees and strikes as the pass decided, but for items whose strikes have changed since its read. */
function withJudgement(
  newest: StoredRange,
  read: StoredRange,
  { next, freed }: Pick<Comparison, 'next' | 'freed'>,
): StoredRange {
  const changed = union(
    difference(newest.strikes.once, read.strikes.once),
    difference(newest.strikes.twice, read.strikes.twice),
  );
  return {
    ...newest,
    data: subtract(newest.data, subtract(freed, changed)),
    strikes: {
      ...next.strikes,
      once: union(intersect(newest.strikes.once, changed), subtract(next.strikes.once, changed)),
      twice: union(intersect(newest.strikes.twice, changed), subtract(next.strikes.twice, changed)),
    },
  };
}

/** A held item has no strikes: the hold may be younger than the read, on an item that the pass struck. */
function withHoldsEnded(range: StoredRange, { ended, bitOf }: Pick<Comparison, 'ended' | 'bitOf'>): StoredRange {
  const now = holdsByItem(range.holds);
  const ending = ended.filter(({ item, hold }) => {
    const still = now.get(item);
    return still !== undefined && sameTerms(still, hold);
  });
  const freed = fromBits(ending.flatMap(({ freedBit }) => freedBit ?? []));
  const holds = withoutHolds(
    range.holds,
    ending.map(({ item }) => item),
  );
  const held = fromBits([...holdsByItem(holds).keys()].flatMap((item) => bitOf(item) ?? []));
  const { once, twice } = range.strikes;
  return {
    ...range,
    data: subtract(range.data, freed),
    strikes: { ...range.strikes, once: subtract(once, held), twice: subtract(twice, held) },
    holds,
  };
}

/** Not when the range was another, and not when another pass struck since: that was the strike of this interval. */
function isJudgementCurrent(newest: StoredRange, read: StoredRange | undefined): read is StoredRange {
  return read !== undefined && read.range === newest.range && sameLastStrike(read.strikes, newest.strikes);
}

/** An item that a Service has, or that is free, has no strikes. */
function withProved(range: StoredRange, generation: number, proved: Uint8Array): StoredRange {
  const data = union(range.data, proved);
  const leftover = subtract(data, proved);
  const { unclaimed: _, ...rest } = range;
  const { once, twice } = range.strikes;
  const strikes = { ...range.strikes, once: intersect(once, leftover), twice: intersect(twice, leftover) };
  const unclaimed = unseenOf(range, data, proved);
  return { ...rest, generation, data, strikes, ...(unclaimed.length > 0 && { unclaimed }) };
}

function difference(one: Uint8Array, other: Uint8Array): Uint8Array {
  return union(subtract(one, other), subtract(other, one));
}
