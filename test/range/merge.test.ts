import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bitsOf, fromBits, hasBit, intersect, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import { holdOn, holdsByItem, isSurelyOver } from '../../lib/range/hold.ts';
import { mergeOntoNewest } from '../../lib/range/merge.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { Comparison } from '../../lib/repair/compare-range.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import {
  aChange,
  type Change,
  changed,
  claims,
  decide,
  expectSound,
  NONE,
  NOW,
  rangeOf,
  SIZE,
  SPEC,
  type Standing,
  standings,
  text,
} from './twelve-ports.ts';

function merged(newest: StoredRange, read: StoredRange | undefined, decided: Comparison): StoredRange {
  const result = mergeOntoNewest(newest, read, decided);
  if (typeof result === 'string') throw new Error(`refused: ${result}`);
  return result;
}

const changes = fc.array(aChange, { maxLength: 2 * SIZE });

/** Reads a range, applies changes of other writers, and merges the decision of a pass into the changed range. */
function scenario(start: readonly Standing[], claimed: readonly number[], later: readonly Change[]) {
  const read = rangeOf(start);
  const touched = new Set<number>();
  const newest = later.reduce((range, each, turn) => {
    const next = changed(range, each, turn);
    if (next !== range) touched.add(each[1]);
    return next;
  }, read);
  const decided = decide(read, claimed);
  return { read, newest, decided, touched, result: merged(newest, read, decided) };
}

const all = [...Array(SIZE).keys()];

type Scenario = ReturnType<typeof scenario> & { readonly claimed: readonly number[] };

/**
 * Tests that the result of a merge has a property, whatever a pass decided and whatever other writers changed during the pass.
 */
function law(title: string, check: (given: Scenario) => void): void {
  test(`the result of a pass, merged into the newest range, ${title}`, () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        check({ ...scenario(start, claimed, later), claimed });
      }),
    );
  });
}

const strikesOf = ({ strikes: { once, twice } }: StoredRange) => [[...bitsOf(once)], [...bitsOf(twice)]];

law('meets the invariants of a range', ({ result }) => expectSound(result));

law('keeps items that were allocated or held after the pass read the range', ({ newest, touched, result }) => {
  for (const at of touched) if (hasBit(newest.data, at)) expect(hasBit(result.data, at)).toBe(true);
});

law('contains the items that the listed Services claim, without strikes', ({ claimed, result: { data, strikes } }) => {
  const proved = fromBits(claimed);
  expect(subtract(proved, data)).toEqual(NONE);
  expect(intersect(proved, union(strikes.once, strikes.twice))).toEqual(NONE);
});

law('contains only items of the newest range and claimed items', ({ newest, claimed, result }) => {
  expect(subtract(result.data, union(newest.data, fromBits(claimed)))).toEqual(NONE);
});

law('contains what the pass decided for each unchanged item', ({ decided: { next }, touched, result }) => {
  for (const at of all.filter((each) => !touched.has(each))) {
    const standing = ({ data, strikes, holds }: StoredRange) => [
      ...[data, strikes.once, strikes.twice].map((bits) => hasBit(bits, at)),
      holdOn(holds, text(at))?.owner,
    ];
    expect(standing(result)).toEqual(standing(next));
  }
});

law('has at most one strike for an item that was allocated after the pass read the range', ({ touched, result }) => {
  for (const at of touched) expect(hasBit(result.strikes.twice, at)).toBe(false);
});

law('contains every hold that was added or changed meanwhile, with its items', ({ read, newest, result }) => {
  for (const [item, hold] of holdsByItem(newest.holds)) {
    const before = holdOn(read.holds, item);
    if (before !== undefined && before.untilMs === hold.untilMs && before.owner === hold.owner) continue;
    expect(holdOn(result.holds, item)).toMatchObject({ owner: 'b', requestId: hold.requestId });
    expect(hasBit(result.data, Number(item) - 30_000)).toBe(true);
  }
});

law('contains only holds of the newest range that had not expired', ({ newest, result }) => {
  const held = holdsByItem(newest.holds);
  for (const [item, hold] of holdsByItem(result.holds)) {
    expect([held.has(item), isSurelyOver(hold, NOW)]).toEqual([true, false]);
  }
});

test('a merged range has no strike on an item that was allocated again after the pass read the range', () => {
  const read = rangeOf(['once', 'twice', 'once']);
  const again = (range: StoredRange, bit: number) => changed(changed(range, ['release', bit]), ['take', bit]);
  const newest = [0, 1].reduce(again, read);
  expect(strikesOf(merged(newest, read, decide(read, [], true)))).toEqual([[2], []]);
});

test('a merge removes expired holds even if another pass wrote strikes after the pass read the range', () => {
  const read = rangeOf(['over', 'held', 'owned', 'twice']);
  const newest = { ...read, strikes: { ...read.strikes, last: { atMs: 0, passId: 'another' } } };
  const result = merged(newest, read, decide(read, [1]));
  expect([...bitsOf(result.data)]).toEqual([1, 2, 3]);
  expect([...holdsByItem(result.holds).keys()]).toEqual(['30002']);
  expect(strikesOf(result)).toEqual([[], [3]]);
});

test('if no range was stored when the pass read it, the merged range is the newest range with the items of the listed Services', () => {
  const newest = rangeOf(['over', 'held', 'owned', 'taken', 'once', 'twice']);
  const result = merged(newest, undefined, decide(storedRange({ range: SPEC, data: NONE }), [1, 4, 8]));
  expect([...bitsOf(result.data)]).toEqual([0, 1, 2, 3, 4, 5, 8]);
  expect([strikesOf(result), result.holds]).toEqual([[[], [5]], newest.holds]);
});

test('a merge frees no item if the bounds of the range changed after the pass read the range', () => {
  const read = { ...rangeOf(['twice', 'twice', 'twice']), range: '29999-30010' };
  const newest = rangeOf(['twice', 'twice', 'twice']);
  expect([...bitsOf(merged(newest, read, decide(read, [])).data)]).toEqual([0, 1, 2]);
});

test.each([
  { name: 'saved under a newer spec', newest: { generation: 2 }, refusal: 'newerSpec' },
  { name: 'a range with other bounds', newest: { range: '30000-30031' }, refusal: 'otherRange' },
  { name: 'saved by another allocator', newest: { allocator: 'apiserver' as const }, refusal: 'otherAllocator' },
])('a decision is not merged if the newest range is $name', ({ newest, refusal }) => {
  const read = rangeOf(['twice']);
  expect(mergeOntoNewest({ ...read, ...newest }, read, decide(read, []))).toBe(refusal);
});

test('a merged range keeps the record of unclaimed items, except those that a Service now has or that were freed', () => {
  const read = rangeOf(['taken', 'twice', 'taken', 'free'], { atMs: -1_000_000, passId: 'earlier' });
  const unclaimed = [{ namespace: 'a', name: 'web', reviews: 3, first: [0, 1], later: [2, 3] }];
  const newest = { ...read, data: union(read.data, fromBits([3])), unclaimed };
  const result = merged(newest, read, decide(read, [0]));
  expect([...bitsOf(result.data)]).toEqual([0, 2, 3]);
  expect(result.unclaimed).toEqual([{ ...unclaimed[0], first: [], later: [2, 3] }]);
});
