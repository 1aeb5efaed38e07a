import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { mergeOntoNewest } from '../../lib/range/merge.ts';
import { allocateForService, undoAllocation } from '../../lib/range/service-allocation.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { made } from '../support/ranges.ts';
import {
  aBit,
  aChange,
  asRange,
  changed,
  claims,
  decide,
  expectSound,
  NOW,
  rangeOf,
  standings,
  text,
} from './twelve-ports.ts';

/** A write of a caller or a pass. `read` is the range as a pass read it before other writes. */
type Write = (range: StoredRange, read: StoredRange) => StoredRange;

const byCaller = aChange.map(
  (change): Write =>
    (range) =>
      changed(range, change),
);

const byReview = fc
  .tuple(aBit, fc.boolean(), fc.boolean(), fc.constantFrom('web', 'api'))
  .map(([bit, isNew, isUndone, name]): Write => {
    const requested = [undefined, text(bit)];
    const options = { service: { namespace: 'a', name }, isNew, named: [text(bit)], claim: { nowMs: () => NOW } };
    return (stored) => {
      const { result, range } = allocateForService(asRange(stored), requested, options);
      if (result.outcome === 'refused' || !isUndone) return range.content;
      return undoAllocation(range, result.undo).range.content;
    };
  });

const byPass = fc.tuple(claims, fc.boolean()).map(([claimed, isLate]): Write => {
  return (range, read) => {
    const merged = mergeOntoNewest(range, isLate ? read : range, decide(isLate ? read : range, claimed));
    return typeof merged === 'string' ? range : merged;
  };
});

test('after each write, the new range meets the invariants of a range, and the earlier value is unchanged', () => {
  fc.assert(
    fc.property(standings, fc.array(fc.oneof(byCaller, byReview, byPass), { maxLength: 12 }), (start, writes) => {
      const read = rangeOf(start);
      writes.reduce((range, write) => {
        const before = structuredClone(range);
        const after = write(range, read);
        expect(range).toEqual(before);
        expectSound(after);
        return after;
      }, read);
    }),
  );
});

test('a range refuses an item that is outside the range or already allocated, and returns the item that it allocates', () => {
  const range = asRange(rangeOf(['taken', 'free']));
  expect(range.take('29999')).toMatchObject({ code: 'NotInRange' });
  expect(range.take('30000')).toMatchObject({ code: 'AlreadyAllocated' });
  const taken = made(range.take('30001'));
  expect([taken.item, taken.range.has('30001'), range.has('30001')]).toEqual(['30001', true, false]);
});
