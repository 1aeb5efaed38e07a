import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bitsOf, fromBits, hasBit, intersect, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import { type HoldTerms, holdOn, holdsByItem, isSurelyOver, withHold, withoutHolds } from '../../lib/cluster/hold.ts';
import type { StoredRange } from '../../lib/cluster/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import { mergeOntoNewest } from '../../lib/repair/merge.ts';
import { HOLD_END_MARGIN_MS, portRange } from '../support/ranges.ts';
import { storedRange } from './repair-cluster.ts';
import { service } from './services.ts';

const SPEC = '30000-30011';
const SIZE = 12;
const NOW = 1_000;
const LAST = { atMs: -1_000_000, passId: 'earlier' };
const NONE = new Uint8Array(0);

const text = (bit: number) => String(30_000 + bit);

/** How each item stands: free, taken with some strikes, held for a while or for good by any or for one, or over. */
type Standing = 'free' | 'taken' | 'once' | 'twice' | 'held' | 'owned' | 'over';

const HELD: Partial<Record<Standing, HoldTerms>> = {
  held: { owner: 'a', takenUpBy: 'any', untilMs: NOW + 1, requestId: 'r0' },
  owned: { owner: 'a', takenUpBy: 'owner', requestId: 'r0' },
  over: { owner: 'a', takenUpBy: 'any', untilMs: NOW - HOLD_END_MARGIN_MS, requestId: 'r0' },
};

function rangeOf(standings: readonly Standing[]): StoredRange {
  const bits = (wanted: (is: Standing) => boolean) => fromBits(standings.flatMap((is, bit) => (wanted(is) ? bit : [])));
  const held = standings.reduce<StoredRange['holds']>((holds, is, bit) => {
    const terms = HELD[is];
    return terms === undefined ? holds : withHold(holds, [text(bit)], terms);
  }, []);
  return storedRange({
    range: SPEC,
    data: bits((is) => is !== 'free'),
    strikes: { once: bits((is) => is === 'once'), twice: bits((is) => is === 'twice'), last: LAST },
    holds: held,
  });
}

/** The claims are those of Services without a label. */
function decide(read: StoredRange, claimed: readonly number[]): Comparison {
  const recorded = portRange(read.range);
  recorded.restore(read);
  const rebuild = startRebuild(read, recorded, portRange(SPEC));
  for (const bit of claimed) rebuild.claim(30_000 + bit, service('s'));
  const turn = { passId: 'this', nowMs: NOW, intervalMs: 180_000, fromZero: false };
  return compareRange(rebuild, { item: 'node port', range: 'port range' }, turn, 1);
}

/** What others do: each as the table does it, in one write, clearing strikes. */
type Change = readonly [what: 'release' | 'take' | 'hold' | 'holdOn', bit: number];

function changed(range: StoredRange, [what, bit]: Change, turn: number): StoredRange {
  const item = fromBits([bit]);
  const { once, twice } = range.strikes;
  const touched = { ...range, strikes: { ...range.strikes, once: subtract(once, item), twice: subtract(twice, item) } };
  const isTaken = hasBit(range.data, bit);
  const before = holdOn(range.holds, text(bit));
  const terms: HoldTerms = { owner: 'b', takenUpBy: 'any', untilMs: NOW + 500, requestId: `r${turn + 1}` };
  if (what === 'release' && isTaken) {
    return { ...touched, data: subtract(range.data, item), holds: withoutHolds(range.holds, [text(bit)]) };
  }
  if (what === 'take' && !isTaken) return { ...touched, data: union(range.data, item) };
  if (what === 'hold' && !isTaken) {
    return { ...touched, data: union(range.data, item), holds: withHold(range.holds, [text(bit)], terms) };
  }
  if (what === 'holdOn' && before !== undefined) {
    return { ...touched, holds: withHold(range.holds, [text(bit)], { ...terms, requestId: 'r0' }) };
  }
  return range;
}

function merged(newest: StoredRange, read: StoredRange | undefined, decided: Comparison): StoredRange {
  const result = mergeOntoNewest(newest, read, decided);
  if (typeof result === 'string') throw new Error(`refused: ${result}`);
  return result;
}

const standings = fc.array(fc.constantFrom<Standing>('free', 'taken', 'once', 'twice', 'held', 'owned', 'over'), {
  minLength: SIZE,
  maxLength: SIZE,
});
const bit = fc.nat({ max: SIZE - 1 });
const claims = fc.uniqueArray(bit);
const change = fc.tuple(fc.constantFrom('release', 'take', 'hold', 'holdOn'), bit) satisfies fc.Arbitrary<Change>;
const changes = fc.array(change, { maxLength: 2 * SIZE });

/** Reads, lets others take, hold and release, and merges. */
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

describe('what goes onto the newest range of its holds', () => {
  test('is every hold that was made or changed since the read, with its item', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { read, newest, result } = scenario(start, claimed, later);
        for (const [item, hold] of holdsByItem(newest.holds)) {
          const before = holdOn(read.holds, item);
          if (before !== undefined && before.untilMs === hold.untilMs && before.owner === hold.owner) continue;
          expect(holdOn(result.holds, item)).toMatchObject({ owner: 'b', requestId: hold.requestId });
          expect(hasBit(result.data, Number(item) - 30_000)).toBe(true);
        }
      }),
    );
  });

  test('is none that the newest has not', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { newest, result } = scenario(start, claimed, later);
        const held = holdsByItem(newest.holds);
        for (const item of holdsByItem(result.holds).keys()) expect(held.has(item)).toBe(true);
      }),
    );
  });

  test('is on items that are taken, and have no strikes', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { data, strikes, holds } = scenario(start, claimed, later).result;
        const held = fromBits([...holdsByItem(holds).keys()].map((item) => Number(item) - 30_000));
        expect(subtract(held, data)).toEqual(NONE);
        expect(intersect(held, union(strikes.once, strikes.twice))).toEqual(NONE);
      }),
    );
  });

  test('frees nothing that was taken or held on since the read', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { newest, touched, result } = scenario(start, claimed, later);
        for (const at of touched) if (hasBit(newest.data, at)) expect(hasBit(result.data, at)).toBe(true);
      }),
    );
  });

  test('is the whole decision where nobody touched the items', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { decided, touched, result } = scenario(start, claimed, later);
        for (const at of all.filter((each) => !touched.has(each))) {
          expect(hasBit(result.data, at)).toBe(hasBit(decided.next.data, at));
          expect(holdOn(result.holds, text(at))?.owner).toBe(holdOn(decided.next.holds, text(at))?.owner);
        }
      }),
    );
  });

  test('has no hold that was over at the read, unless it was held on or a Service has the item', () => {
    fc.assert(
      fc.property(standings, claims, changes, (start, claimed, later) => {
        const { result } = scenario(start, claimed, later);
        for (const hold of holdsByItem(result.holds).values()) expect(isSurelyOver(hold, NOW)).toBe(false);
      }),
    );
  });

  test('ends also when another pass struck since the read', () => {
    const read = rangeOf(['over', 'held', 'owned', 'twice']);
    const newest = { ...read, strikes: { ...read.strikes, last: { atMs: 0, passId: 'another' } } };
    const result = merged(newest, read, decide(read, [1]));
    expect([...bitsOf(result.data)]).toEqual([1, 2, 3]);
    expect([...holdsByItem(result.holds).keys()]).toEqual(['30002']);
    expect([...bitsOf(result.strikes.twice)]).toEqual([3]);
  });

  test('is all of the newest when nothing was stored at the read', () => {
    const newest = rangeOf(['over', 'held', 'owned']);
    const result = merged(newest, undefined, decide(storedRange({ range: SPEC, data: NONE }), [1]));
    expect([...bitsOf(result.data)]).toEqual([0, 1, 2]);
    expect(result.holds).toEqual(newest.holds);
  });
});
