import { describe, expect, test } from '@jest/globals';
import { portRange } from '../support/ranges.ts';

/* The golden cases test the operations of a range. */

const FULL = { code: 'Full', message: 'range is full' };

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

  test('an empty range is full, and its snapshot names no range', () => {
    const range = portRange('');
    expect(range.allocateNext()).toMatchObject(FULL);
    expect(range.snapshot()).toEqual({ range: '', data: new Uint8Array(0) });
  });
});
