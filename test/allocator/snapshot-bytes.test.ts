import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  bitsOf,
  equalBits,
  fromBits,
  hasBit,
  intersect,
  popCount,
  subtract,
  trimmed,
  union,
} from '../../lib/allocator/snapshot-bytes.ts';

const hex = (data: Uint8Array) => Buffer.from(data).toString('hex');
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));

describe('The bytes of a snapshot', () => {
  test.each([
    { data: '', count: 0 },
    { data: '00', count: 0 },
    { data: 'ffffffffff', count: 40 },
    { data: `01${'00'.repeat(32)}`, count: 1 },
  ])('the bytes "$data" have $count bits set', ({ data, count }) => {
    expect(popCount(bytes(data))).toBe(count);
  });

  test('leading zero bytes do not change the set, and are never returned', () => {
    const padded = bytes('000000000201');
    expect([...bitsOf(padded)]).toEqual([0, 9]);
    expect(equalBits(padded, bytes('0201'))).toBe(true);
    expect(equalBits(padded, bytes('0202'))).toBe(false);
    expect([trimmed(padded), union(padded, padded)].map(hex)).toEqual(['0201', '0201']);
  });
});

const sets = fc.uniqueArray(fc.integer({ min: 0, max: 400 })).map((bits) => new Set(bits));
const ascending = (...bits: number[]) => [...new Set(bits)].toSorted((a, b) => a - b);

test('set operations on snapshot bytes have the same results as on other sets', () => {
  fc.assert(
    fc.property(sets, sets, fc.integer({ min: 0, max: 401 }), (one, other, bit) => {
      const [a, b] = [fromBits(one), fromBits(other)];
      expect([...bitsOf(union(a, b))]).toEqual(ascending(...one, ...other));
      expect([...bitsOf(intersect(a, b))]).toEqual(ascending(...one).filter((each) => other.has(each)));
      expect([...bitsOf(subtract(a, b))]).toEqual(ascending(...one).filter((each) => !other.has(each)));
      expect(equalBits(a, b)).toBe(`${ascending(...one)}` === `${ascending(...other)}`);
      expect(equalBits(a, new Uint8Array([0, ...a]))).toBe(true);
      expect(hasBit(a, bit)).toBe(one.has(bit));
      expect(popCount(a)).toBe(one.size);
    }),
  );
});

test('the bytes of a snapshot are those of a big integer with the same bits', () => {
  fc.assert(
    fc.property(sets, (bits) => {
      const number = [...bits].reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n);
      const digits = number === 0n ? '' : number.toString(16);
      expect(hex(fromBits(bits))).toBe(digits.padStart(digits.length + (digits.length % 2), '0'));
    }),
  );
});
