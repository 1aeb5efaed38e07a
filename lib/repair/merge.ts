import type { StoredRange } from '../allocator/range-allocator.ts';
import { intersect, subtract, union } from '../allocator/snapshot-bytes.ts';
import { type Comparison, sameTurn } from './compare.ts';

/** Why what a pass decided can not be put onto the newest stored range. */
export type MergeRefusal = 'otherRange' | 'newerSpec' | 'otherAllocator';

/**
 * What to save when the range was written since the pass read it. Onto the `newest` goes every bit that the list
 * proves; and of the pass's judgement on leaks what concerns items whose strikes are as it `read` them. An allocation
 * clears the strikes of its item, so none that was made since the read is ever freed here.
 * @param read undefined when nothing was stored then
 */
export function mergeOntoNewest(
  newest: StoredRange,
  read: StoredRange | undefined,
  decided: Pick<Comparison, 'next' | 'proved' | 'freed'>,
): StoredRange | MergeRefusal {
  const { next, proved, freed } = decided;
  if (newest.generation > next.generation) return 'newerSpec';
  if (newest.allocator !== next.allocator) return 'otherAllocator';
  if (newest.range !== next.range) return 'otherRange';

  if (!judgementHolds(newest, read)) return withProved(newest, next.generation, proved);
  const changed = union(
    difference(newest.strikes.once, read.strikes.once),
    difference(newest.strikes.twice, read.strikes.twice),
  );
  const judged: StoredRange = {
    ...newest,
    data: subtract(newest.data, subtract(freed, changed)),
    strikes: {
      ...next.strikes,
      once: union(intersect(newest.strikes.once, changed), subtract(next.strikes.once, changed)),
      twice: union(intersect(newest.strikes.twice, changed), subtract(next.strikes.twice, changed)),
    },
  };
  return withProved(judged, next.generation, proved);
}

/** Not when the range was of other numbers, and not when another pass struck since: that was this interval's strike. */
function judgementHolds(newest: StoredRange, read: StoredRange | undefined): read is StoredRange {
  return read !== undefined && read.range === newest.range && sameTurn(read.strikes.last, newest.strikes.last);
}

/** What is proved has no strikes, and neither has what is not taken. */
function withProved(range: StoredRange, generation: number, proved: Uint8Array): StoredRange {
  const data = union(range.data, proved);
  const leftover = subtract(data, proved);
  const { once, twice } = range.strikes;
  const strikes = { ...range.strikes, once: intersect(once, leftover), twice: intersect(twice, leftover) };
  return { ...range, generation, data, strikes };
}

function difference(one: Uint8Array, other: Uint8Array): Uint8Array {
  return union(subtract(one, other), subtract(other, one));
}
