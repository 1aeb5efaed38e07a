import { expect } from '@jest/globals';
import fc from 'fast-check';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { bitsOf, fromBits, intersect, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import { type HoldTerms, withHold } from '../../lib/range/hold.ts';
import { Range } from '../../lib/range/range.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { service } from '../repair/services.ts';
import { HOLD_END_MARGIN_MS, made, portRange } from '../support/ranges.ts';

export const SPEC = '30000-30011';
export const SIZE = 12;
export const NOW = 1_000;
const LAST = { atMs: -1_000_000, passId: 'earlier' };
export const NONE = new Uint8Array(0);

export const text = (bit: number) => String(30_000 + bit);

/**
 * The state of an item: free; allocated with no strike, one or two strikes; held for any Service, with an end; held for Services
 * of its owner, without an end; or in an expired hold.
 */
export type Standing = 'free' | 'taken' | 'once' | 'twice' | 'held' | 'owned' | 'over';

const HELD: Partial<Record<Standing, HoldTerms>> = {
  held: { owner: 'a', takenUpBy: 'any', untilMs: NOW + 1, requestId: 'r0' },
  owned: { owner: 'a', takenUpBy: 'owner', requestId: 'r0' },
  over: { owner: 'a', takenUpBy: 'any', untilMs: NOW - HOLD_END_MARGIN_MS, requestId: 'r0' },
};

export function rangeOf(standings: readonly Standing[], last = LAST): StoredRange {
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
export function decide(read: StoredRange, claimed: readonly number[], fromZero = false): Comparison {
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
export type Change = readonly [what: 'release' | 'take' | 'hold' | 'holdAgain' | 'claim', bit: number];

export function changed(stored: StoredRange, [what, bit]: Change, turn = 0): StoredRange {
  const range = asRange(stored);
  const port = text(bit);
  const terms: HoldTerms = { owner: 'b', takenUpBy: 'any', untilMs: NOW + 500, requestId: `r${turn + 1}` };
  if (what === 'release') return range.has(port) ? range.release(port).content : stored;
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
export const standings = fc.array(aStanding, { minLength: SIZE, maxLength: SIZE });
const aBit = fc.nat({ max: SIZE - 1 });
export const claims = fc.uniqueArray(aBit);
const aKind = fc.constantFrom('release', 'take', 'hold', 'holdAgain', 'claim');
export const aChange = fc.tuple(aKind, aBit) satisfies fc.Arbitrary<Change>;

/** Expects that the range meets the invariants in the comment of `StoredRange`. */
export function expectSound({ data, strikes: { once, twice }, holds, unclaimed }: StoredRange): void {
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
