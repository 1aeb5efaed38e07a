import { describe, expect, test } from '@jest/globals';
import { allocateUntilFull, itemsOf, portRange } from '../support/ranges.ts';

/* What a range answers to every operation is in the golden cases. */

const FULL = { code: 'Full', message: 'range is full' };
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

describe('A range of node ports', () => {
  test.each([1, 20_000, 10_201, 9_999, -2, 10_000.5, Number.NaN])(
    'the ports 10000 to 10200 do not contain %d',
    (port) => {
      const range = portRange('10000-10200');
      range.release(port);
      expect(range.allocate(port)).toMatchObject({
        code: 'NotInRange',
        message: 'provided port is not in the valid range. The range of valid ports is 10000-10200',
      });
      expect([range.has(port), range.indexOf(port), range.used]).toEqual([false, undefined, 0]);
    },
  );

  test('a range of node ports refuses a port that is allocated', () => {
    const range = portRange('10000-10200');
    expect(range.allocate(10_005)).toBeUndefined();
    expect(range.allocate(10_005)).toMatchObject({
      code: 'AlreadyAllocated',
      message: 'provided port is already allocated',
    });
  });

  test('an empty range is full, and has a snapshot without a range', () => {
    const range = portRange('');
    expect(range.allocateNext()).toMatchObject(FULL);
    expect(range.snapshot()).toEqual({ range: '', data: new Uint8Array(0) });
  });

  test('the ports 30000 to 32767 allocate 2682 ports above the reserved band, then those within it', () => {
    const range = portRange('30000-32767');
    for (let taken = 0; taken < 2682; taken++) range.allocateNext();
    expect(itemsOf(range)).toEqual(numbers(30_086, 2682));
    expect(allocateUntilFull(range)).toHaveLength(86);
    range.release(30_053);
    expect(allocateUntilFull(range)).toEqual([30_053]);
  });
});
