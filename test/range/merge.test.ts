import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { bitsOf, fromBits, hasBit, intersect, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import { type HoldTerms, holdOn, holdsByItem, isSurelyOver, withHold } from '../../lib/range/hold.ts';
import { mergeOntoNewest } from '../../lib/range/merge.ts';
import { Range } from '../../lib/range/range.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { service } from '../repair/services.ts';
import { found } from '../support/found.ts';
import { HOLD_END_MARGIN_MS, made, portRange, storedRange } from '../support/ranges.ts';

const SPEC = '30000-30011';
const SIZE = 12;
const NOW = 1_000;
const LAST = { atMs: -1_000_000, passId: 'earlier' };
const NONE = new Uint8Array(0);

const text = (bit: number) => String(30_000 + bit);

/**
 * The state of an item: free; allocated with no strike, one or two strikes; held for any Service, with an end; held for Services
 * of its owner, without an end; or in an expired hold.
 */
type Standing = 'free' | 'taken' | 'once' | 'twice' | 'held' | 'owned' | 'over';

const HELD: Partial<Record<Standing, HoldTerms>> = {
  held: { owner: 'a', takenUpBy: 'any', untilMs: NOW + 1, requestId: 'r0' },
  owned: { owner: 'a', takenUpBy: 'owner', requestId: 'r0' },
  over: { owner: 'a', takenUpBy: 'any', untilMs: NOW - HOLD_END_MARGIN_MS, requestId: 'r0' },
};

function rangeOf(standings: readonly Standing[], last = LAST): StoredRange {
  const bits = (wanted: (is: Standing) => boolean) => fromBits(standings.flatMap((is, bit) => (wanted(is) ? bit : [])));
  const held = standings.reduce<StoredRange['holds']>((holds, is, bit) => {
    const terms = HELD[is];
    return terms === undefined ? holds : withHold(holds, [text(bit)], terms);
  }, []);
  return storedRange({
    range: SPEC,
    data: bits((is) => is !== 'free'),
    strikes: { once: bits((is) => is === 'once'), twice: bits((is) => is === 'twice'), last },
    holds: held,
  });
}

/** Returns the decision of a pass about the ports with these bits. The Services that claim the ports have no label. */
function decide(read: StoredRange, claimed: readonly number[], fromZero = false): Comparison {
  const rebuild = made(startRebuild(RANGE_KEYS.nodePorts, SPEC, read));
  for (const bit of claimed) rebuild.claim(text(bit), service('s'));
  const pass = { passId: 'this', nowMs: NOW, intervalMs: 180_000, fromZero, controlPlane: 'c', mayFree: true };
  return compareRange(rebuild, { item: 'node port', range: 'port range' }, pass, 1);
}

function asRange(stored: StoredRange): Range {
  const taken = portRange(stored.range);
  taken.restore(stored.data);
  return new Range(stored, taken);
}

/** A change by another writer. `hold` releases the item first if it is allocated. */
type Change = readonly [what: 'release' | 'take' | 'hold' | 'holdAgain' | 'claim', bit: number];

function changed(stored: StoredRange, [what, bit]: Change, turn = 0): StoredRange {
  const range = asRange(stored);
  const port = text(bit);
  const terms: HoldTerms = { owner: 'b', takenUpBy: 'any', untilMs: NOW + 500, requestId: `r${turn + 1}` };
  if (what === 'release') return range.taken.has(port) ? range.release(port).content : stored;
  if (what === 'claim' || what === 'holdAgain') {
    if (range.holdOn(port) === undefined) return stored;
    return what === 'claim'
      ? range.claim(port).range.content
      : range.hold([port], { ...terms, requestId: 'r0' }).content;
  }
  const taken = (what === 'hold' ? range.release(port) : range).take(port);
  if (isRefused(taken)) return stored;
  return what === 'take' ? taken.range.content : taken.range.hold([port], terms).content;
}

const aStanding = fc.constantFrom<Standing>('free', 'taken', 'once', 'twice', 'held', 'owned', 'over');
const standings = fc.array(aStanding, { minLength: SIZE, maxLength: SIZE });
const aBit = fc.nat({ max: SIZE - 1 });
const claims = fc.uniqueArray(aBit);
const aKind = fc.constantFrom('release', 'take', 'hold', 'holdAgain', 'claim');
const aChange = fc.tuple(aKind, aBit) satisfies fc.Arbitrary<Change>;

/** Expects that the range meets the invariants in the comment of `StoredRange`. */
function expectSound({ data, strikes: { once, twice }, holds, unclaimed }: StoredRange): void {
  const heldItems = holds.flatMap(({ items }) => items);
  const given = unclaimed.flatMap(({ first, later }) => [...first, ...later]);
  const held = fromBits(heldItems.map((item) => Number(item) - 30_000));
  const struck = union(once, twice);
  expect(bitsOf(data).filter((bit) => bit >= SIZE)).toEqual([]);
  expect(subtract(union(union(held, struck), fromBits(given)), data)).toEqual(NONE);
  expect(intersect(held, struck)).toEqual(NONE);
  expect(intersect(once, twice)).toEqual(NONE);
  expect(new Set(heldItems).size).toBe(heldItems.length);
  expect(new Set(given).size).toBe(given.length);
}

function merged(newest: StoredRange, read: StoredRange | undefined, decided: Comparison): StoredRange {
  return found(mergeOntoNewest(newest, read, decided));
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

/** Tests that the result of a merge has a property, whatever a pass decided and other writers changed during the pass. */
function law(title: string, check: (given: Scenario) => void): void {
  test(`a merged range ${title}`, () => {
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

test('if the pass read no range because another writer stored the first one later, the merged range is that range plus the items of the listed Services', () => {
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
  { name: 'saved under a newer spec', newest: { generation: 2 } },
  { name: 'saved for other bounds', newest: { range: '30000-30031' } },
  { name: 'saved by another allocator', newest: { allocator: 'apiserver' as const } },
])('if the newest range was $name, the decision of the pass is not merged', ({ newest }) => {
  const read = rangeOf(['twice']);
  expect(mergeOntoNewest({ ...read, ...newest }, read, decide(read, []))).toBeUndefined();
});

test('a merged range keeps the record of unclaimed items, without the items that a Service now has and the items that were freed', () => {
  const read = rangeOf(['taken', 'twice', 'taken', 'free'], { atMs: -1_000_000, passId: 'earlier' });
  const unclaimed = [{ namespace: 'a', name: 'web', reviews: 3, first: [0, 1], later: [3] }];
  const newest = { ...read, data: union(read.data, fromBits([3])), unclaimed };
  const result = merged(newest, read, decide(read, [0]));
  expect([...bitsOf(result.data)]).toEqual([0, 2, 3]);
  expect(result.unclaimed).toEqual([{ ...unclaimed[0], first: [], later: [3] }]);
});
