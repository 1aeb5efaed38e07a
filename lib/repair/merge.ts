import { fromBits, intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { holdsByItem, sameTerms, withoutHolds } from '../cluster/hold.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import { type Comparison, sameTurn, unseenOf } from './compare.ts';

/** Why what a pass decided can not be put onto the newest stored range. */
export type MergeRefusal = 'otherRange' | 'newerSpec' | 'otherAllocator';

/**
 * What to save when the range was written since the pass read it. Onto the `newest` goes every bit that the list
 * proves; and of the pass's judgement on leaks what concerns items whose strikes are as it `read` them. An allocation
 * clears the strikes of its item, so none that was made since the read is ever freed here. A hold ends here when it is
 * still the very one that the pass read; every other hold of the newest goes on.
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

  const judged = judgementHolds(newest, read) ? withJudgement(newest, read, decided) : newest;
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

/** What is held has no strikes: it may have come after the read, onto an item that the pass struck. */
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

/** Not when the range was of other numbers, and not when another pass struck since: that was this interval's strike. */
function judgementHolds(newest: StoredRange, read: StoredRange | undefined): read is StoredRange {
  return read !== undefined && read.range === newest.range && sameTurn(read.strikes.last, newest.strikes.last);
}

/** What is proved has no strikes, and neither has what is not taken. */
function withProved(range: StoredRange, generation: number, proved: Uint8Array): StoredRange {
  const data = union(range.data, proved);
  const leftover = subtract(data, proved);
  const { given: _, ...rest } = range;
  const { once, twice } = range.strikes;
  const strikes = { ...range.strikes, once: intersect(once, leftover), twice: intersect(twice, leftover) };
  const given = unseenOf(range, data, proved);
  return { ...rest, generation, data, strikes, ...(given.length > 0 && { given }) };
}

function difference(one: Uint8Array, other: Uint8Array): Uint8Array {
  return union(subtract(one, other), subtract(other, one));
}
