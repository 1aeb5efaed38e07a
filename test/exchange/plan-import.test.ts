import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bitsOf, fromBits, hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import { type Hold, holdOn } from '../../lib/cluster/hold.ts';
import type { StoredRange } from '../../lib/cluster/stored-range.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { type ImportPlan, type IncomingRange, planImport } from '../../lib/exchange/plan-import.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { bitsBelow, refusal } from './files.ts';

const RANGE = '10.0.0.0/24';
const NOW_MS = 1000;

function stored(bits: readonly number[], fields: Partial<StoredRange> = {}): StoredRange {
  return storedRange({ range: RANGE, data: fromBits(bits), ...fields });
}

function incoming(bits: readonly number[], fields: Partial<IncomingRange> = {}): IncomingRange {
  return { key: 'ranges/serviceips', range: RANGE, allocator: 'table', data: fromBits(bits), holds: [], ...fields };
}

function hold(items: readonly string[], terms: Partial<Hold> = {}): Hold {
  return { items, owner: 'theirs', takenUpBy: 'any', ...terms };
}

function plan(here: StoredRange | undefined, file: IncomingRange, configured = RANGE): ImportPlan | ExchangeError {
  return planImport(here, file, { configured, nowMs: NOW_MS });
}

function planned(here: StoredRange | undefined, file: IncomingRange): ImportPlan {
  const result = plan(here, file);
  if (result instanceof ExchangeError) throw result;
  return result;
}

const numbers = (bits: Uint8Array) => [...bitsOf(bits)];

describe('An import of a range', () => {
  test('sets what is missing, and clears nothing', () => {
    const { toSet, alreadySet, onlyHere, next, changes } = planned(stored([1, 2]), incoming([2, 3]));
    expect([toSet, alreadySet, onlyHere].map(numbers)).toEqual([[3], [2], [1]]);
    expect(numbers(next.data)).toEqual([1, 2, 3]);
    expect(changes).toBe(true);
  });

  test('into a range that no pass has saved makes it', () => {
    const { next, changes } = planned(undefined, incoming([]));
    expect(next).toEqual({
      range: RANGE,
      data: new Uint8Array(0),
      allocator: 'table',
      strikes: { once: new Uint8Array(0), twice: new Uint8Array(0) },
      holds: [],
    });
    expect(changes).toBe(true);
  });

  test('that has nothing new changes nothing', () => {
    const holds = [hold(['10.0.0.2'])];
    expect(planned(stored([1, 2]), incoming([1], { holds })).changes).toBe(false);
  });

  test('clears the strikes of what it has, and of nothing else', () => {
    const strikes = { once: fromBits([1, 2]), twice: fromBits([3, 4]), last: { atMs: 7, passId: 'p' } };
    const { next, struck, changes } = planned(stored([1, 2, 3, 4], { strikes }), incoming([2, 4]));
    expect(numbers(struck)).toEqual([2, 4]);
    expect(next.strikes).toEqual({ once: fromBits([1]), twice: fromBits([3]), last: strikes.last });
    expect(changes).toBe(true);
  });

  test('imports holds of items that are free here', () => {
    const mine = hold(['10.0.0.3'], { owner: 'mine' });
    const holds = [hold(['10.0.0.2', '10.0.0.3', '10.0.0.4']), hold(['10.0.0.5'], { untilMs: NOW_MS })];
    const {
      next,
      holds: taken,
      holdsLeftOut,
    } = planned(stored([2, 3], { holds: [mine] }), incoming([1, 2, 3, 4], { holds }));
    expect(taken).toEqual([hold(['10.0.0.2'])]);
    expect(holdsLeftOut).toBe(3);
    expect(next.holds).toEqual([mine, hold(['10.0.0.2'])]);
  });

  test('keeps every hold within what is taken, each item in one', () => {
    fc.assert(
      fc.property(bitsBelow(254), bitsBelow(254), (here, there) => {
        const name = (bit: number) => `10.0.0.${bit + 1}`;
        const own = numbers(here).map((bit) => hold([name(bit)], { owner: 'mine' }));
        const theirs = numbers(there).map((bit) => hold([name(bit)]));
        const { next } = planned(stored(numbers(here), { holds: own }), incoming(numbers(there), { holds: theirs }));
        for (let bit = 0; bit < 254; bit++) {
          const [isHere, isThere] = [here, there].map((data) => hasBit(data, bit));
          expect(hasBit(next.data, bit)).toBe(isHere || isThere);
          expect(holdOn(next.holds, name(bit))?.owner).toBe(isHere ? 'mine' : isThere ? 'theirs' : undefined);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('is the same whatever way the range is written', () => {
    expect(planned(stored([]), incoming([1], { range: '10.0.0.9/24' })).next.range).toBe(RANGE);
  });

  test('is refused from a usage bitmap', () => {
    const file = incoming([], { allocator: 'apiserver' });
    expect(plan(stored([]), file)).toEqual(refusal('NoRecord', 'no record of allocations'));
  });

  test('is refused until what is stored was carried over to the range that the spec has', () => {
    expect(plan(stored([], { range: '10.0.0.0/25' }), incoming([]))).toEqual(
      refusal('OtherRange', 'stored for 10.0.0.0/25', 'wait until an enforcing pass'),
    );
  });

  test('is refused when the holds would no longer fit', () => {
    const range = '10.0.0.0/20';
    const bits = Array.from({ length: 1000 }, (_, index) => index);
    const items = bits.map((bit) => `10.0.${Math.floor((bit + 1) / 256)}.${(bit + 1) % 256}`);
    const holds = items.map((item) =>
      hold([item], { owner: `x${item}`.padEnd(63, 'x'), requestId: item.padEnd(300, 'x') }),
    );
    const file = incoming(bits, { range, holds });
    expect(plan(stored([], { range }), file, range)).toEqual(refusal('HoldsFull', 'bytes of holds', '65536'));
    expect(plan(stored(bits, { range }), file, range)).toMatchObject({ holdsLeftOut: 1000 });
  });
});
