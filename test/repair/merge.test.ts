import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bitsOf, fromBits, hasBit, intersect, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import type { StoredRange } from '../../lib/cluster/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import { mergeOntoNewest } from '../../lib/repair/merge.ts';
import { portRange } from '../support/ranges.ts';
import { storedRange } from './repair-cluster.ts';
import { service } from './services.ts';

const SPEC = '30000-30015';
const SIZE = 16;
const LAST = { atMs: 0, passId: 'earlier' };
const NONE = new Uint8Array(0);

/** How each item stands: free, taken, or taken with one strike or two. */
type Standing = 'free' | 'taken' | 'once' | 'twice';

function rangeOf(standings: readonly Standing[], last = LAST): StoredRange {
  const bits = (...wanted: Standing[]) => fromBits(standings.flatMap((is, bit) => (wanted.includes(is) ? [bit] : [])));
  const strikes = { once: bits('once'), twice: bits('twice'), last };
  return storedRange({ range: SPEC, data: bits('taken', 'once', 'twice'), strikes });
}

function decide(read: StoredRange, claimed: Iterable<number>, fromZero = false): Comparison {
  const recorded = portRange(read.range);
  recorded.restore(read);
  const rebuild = startRebuild(read, recorded, portRange(SPEC));
  for (const bit of claimed) rebuild.claim(30_000 + bit, service('s'));
  const turn = { passId: 'this', nowMs: 180_000, intervalMs: 180_000, fromZero };
  return compareRange(rebuild, { item: 'node port', range: 'port range' }, turn, 1);
}

/** Allocates what is free and releases what is taken: both clear the strikes of the item. */
function toggled(range: StoredRange, bit: number): StoredRange {
  const item = fromBits([bit]);
  const { once, twice, last } = range.strikes;
  return {
    ...range,
    data: hasBit(range.data, bit) ? subtract(range.data, item) : union(range.data, item),
    strikes: { once: subtract(once, item), twice: subtract(twice, item), ...(last && { last }) },
  };
}

function merged(newest: StoredRange, read: StoredRange | undefined, decided: Comparison): StoredRange {
  const result = mergeOntoNewest(newest, read, decided);
  if (typeof result === 'string') throw new Error(`refused: ${result}`);
  return result;
}

const standings = fc.array(fc.constantFrom<Standing>('free', 'taken', 'once', 'twice'), {
  minLength: SIZE,
  maxLength: SIZE,
});
const items = fc.nat({ max: SIZE - 1 });
const someItems = fc.uniqueArray(items);
const toggles = fc.array(items, { maxLength: 2 * SIZE });

/** Reads, lets others allocate and release, and merges. */
function scenario(start: readonly Standing[], claimed: readonly number[], changes: readonly number[]) {
  const read = rangeOf(start);
  const newest = changes.reduce(toggled, read);
  const decided = decide(read, claimed);
  return { read, newest, decided, result: merged(newest, read, decided) };
}

/** Taken in the newest, and by an allocation that came after the read. */
function allocatedSince(newest: StoredRange, changes: readonly number[]): number[] {
  return [...new Set(changes)].filter((bit) => hasBit(newest.data, bit));
}

describe('what goes onto the newest range', () => {
  test('never clears what was allocated after the read', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { newest, result } = scenario(start, claimed, changes);
        for (const bit of allocatedSince(newest, changes)) expect(hasBit(result.data, bit)).toBe(true);
      }),
    );
  });

  test('always has what the list proves, without strikes', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { result } = scenario(start, claimed, changes);
        const proved = fromBits(claimed);
        expect(subtract(proved, result.data)).toEqual(NONE);
        expect(intersect(proved, union(result.strikes.once, result.strikes.twice))).toEqual(NONE);
      }),
    );
  });

  test('takes nothing that neither the newest nor the list has taken', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { newest, result } = scenario(start, claimed, changes);
        expect(subtract(result.data, union(newest.data, fromBits(claimed)))).toEqual(NONE);
      }),
    );
  });

  test('has strikes only on what is taken, and never both kinds on one item', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { data, strikes } = scenario(start, claimed, changes).result;
        expect(subtract(union(strikes.once, strikes.twice), data)).toEqual(NONE);
        expect(intersect(strikes.once, strikes.twice)).toEqual(NONE);
      }),
    );
  });

  test('is the whole decision where nobody touched the items', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { decided, result } = scenario(start, claimed, changes);
        for (let bit = 0; bit < SIZE; bit++) {
          if (changes.includes(bit)) continue;
          expect(standingOf(result, bit)).toBe(standingOf(decided.next, bit));
        }
      }),
    );
  });

  test('gives what was allocated after the read one strike at most', () => {
    fc.assert(
      fc.property(standings, someItems, toggles, (start, claimed, changes) => {
        const { newest, result } = scenario(start, claimed, changes);
        for (const bit of allocatedSince(newest, changes)) expect(hasBit(result.strikes.twice, bit)).toBe(false);
      }),
    );
  });

  test('has no strike on what was allocated after the read, where strikes start from zero', () => {
    const read = rangeOf(['once', 'twice', 'once']);
    const newest = toggled(toggled(toggled(toggled(read, 0), 0), 1), 1);
    const { strikes } = merged(newest, read, decide(read, [], true));
    expect([[...bitsOf(strikes.once)], [...bitsOf(strikes.twice)]]).toEqual([[2], []]);
  });

  test('is all that others struck, when another pass struck since the read', () => {
    fc.assert(
      fc.property(standings, standings, someItems, (start, later, claimed) => {
        const read = rangeOf(start);
        const newest = rangeOf(later, { atMs: 90_000, passId: 'another' });
        const proved = fromBits(claimed);
        const result = merged(newest, read, decide(read, claimed));
        expect(result.data).toEqual(union(newest.data, proved));
        expect(result.strikes).toEqual({
          once: subtract(newest.strikes.once, proved),
          twice: subtract(newest.strikes.twice, proved),
          last: newest.strikes.last,
        });
      }),
    );
  });

  test('is only what the list proves, when nothing was stored at the read', () => {
    const newest = rangeOf(['taken', 'once', 'twice']);
    const result = merged(newest, undefined, decide(storedRange({ range: SPEC, data: NONE }), [1, 5]));
    expect([...bitsOf(result.data)]).toEqual([0, 1, 2, 5]);
    expect([...bitsOf(result.strikes.once)]).toEqual([]);
    expect([...bitsOf(result.strikes.twice)]).toEqual([2]);
  });

  test('judges no leak by numbers of another range', () => {
    const read = { ...rangeOf(['twice', 'twice', 'twice']), range: '29999-30014' };
    const newest = rangeOf(['twice', 'twice', 'twice']);
    expect([...bitsOf(merged(newest, read, decide(read, [])).data)]).toEqual([0, 1, 2]);
  });

  test('is stamped with the generation of the pass', () => {
    const read = rangeOf([]);
    expect(merged({ ...read, generation: 0 }, read, decide(read, [])).generation).toBe(1);
  });

  test.each([
    { name: 'of a newer spec', newest: { generation: 2 }, refusal: 'newerSpec' },
    { name: 'of other items', newest: { range: '30000-30031' }, refusal: 'otherRange' },
    { name: 'of another allocator', newest: { allocator: 'apiserver' as const }, refusal: 'otherAllocator' },
  ])('is nothing when the newest is $name', ({ newest, refusal }) => {
    const read = rangeOf(['twice']);
    expect(mergeOntoNewest({ ...read, ...newest }, read, decide(read, []))).toBe(refusal);
  });
});

function standingOf({ data, strikes }: StoredRange, bit: number): Standing {
  if (!hasBit(data, bit)) return 'free';
  if (hasBit(strikes.twice, bit)) return 'twice';
  return hasBit(strikes.once, bit) ? 'once' : 'taken';
}

test('what admission allocated since the read stays unclaimed, except what a Service has and what is freed', () => {
  const read = rangeOf(['taken', 'twice', 'taken', 'free'], { atMs: -1_000_000, passId: 'earlier' });
  const unclaimed = [{ namespace: 'a', name: 'web', reviews: 3, first: [0, 1], later: [2, 3] }];
  const newest = { ...read, data: union(read.data, fromBits([3])), unclaimed };
  const result = merged(newest, read, decide(read, [0]));
  expect([...bitsOf(result.data)]).toEqual([0, 2, 3]);
  expect(result.unclaimed).toEqual([{ ...unclaimed[0], first: [], later: [2, 3] }]);
});
