import { describe, expect, test } from '@jest/globals';
import { AllocationBitmap } from '../../lib/allocator/bitmap.ts';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { scriptedPick, seededPick } from '../support/ranges.ts';

const SHAPES = [
  { max: 32, reserved: 0 },
  { max: 8, reserved: 0 },
  { max: 128, reserved: 16 },
  { max: 1024, reserved: 64 },
  { max: 65_535, reserved: 256 },
];

function bitmapOf(shape: { max: number; reserved?: number }): AllocationBitmap {
  return new AllocationBitmap({ ...shape, spec: 'test', pick: seededPick(7) });
}

function allocateUntilFull(bitmap: AllocationBitmap): number[] {
  const items: number[] = [];
  for (let item = bitmap.allocateNext(); item !== undefined; item = bitmap.allocateNext()) items.push(item);
  return items;
}

const numbersBelow = (end: number) => Array.from({ length: end }, (_, number) => number);

describe('An allocation bitmap', () => {
  describe.each(SHAPES)('of $max items, $reserved of them reserved,', (shape) => {
    test('counts what allocateNext allocates', () => {
      const bitmap = bitmapOf(shape);
      expect(bitmap.allocateNext()).toBeDefined();
      expect({ used: bitmap.used, free: bitmap.free }).toEqual({ used: 1, free: shape.max - 1 });
    });

    test('has no next item once every item was allocated by number', () => {
      const bitmap = bitmapOf(shape);
      for (const item of numbersBelow(shape.max)) expect(bitmap.allocate(item)).toBe(true);
      expect(bitmap.allocateNext()).toBeUndefined();
      expect(bitmap.allocate(shape.max)).toBeInstanceOf(AllocatorError);
      expect(bitmap.free).toBe(0);
    });

    test('allocates each item once by allocateNext, and then none', () => {
      const bitmap = bitmapOf(shape);
      expect(new Set(allocateUntilFull(bitmap)).size).toBe(shape.max);
      expect(bitmap.allocateNext()).toBeUndefined();
      expect(bitmap.free).toBe(0);
    });

    test('refuses an allocated item without an error', () => {
      const bitmap = bitmapOf(shape);
      expect(bitmap.allocate(3)).toBe(true);
      expect(bitmap.allocate(3)).toBe(false);
    });

    test('has an item from its allocation to its release', () => {
      const bitmap = bitmapOf(shape);
      bitmap.allocate(3);
      expect(bitmap.has(3)).toBe(true);
      bitmap.release(3);
      expect(bitmap.has(3)).toBe(false);
    });

    test.each([[[]], [[0]], [[0, 2, 5]], [[0, 1, 2, 3, 4, 5, 6, 7]]])(
      'lists %j after they were taken',
      (items: number[]) => {
        const bitmap = bitmapOf(shape);
        for (const item of items) bitmap.allocate(item);
        expect([...bitmap.items()]).toEqual(items);
      },
    );

    test('is restored from a snapshot into a smaller bitmap, even one with more reserved than it has', () => {
      const bitmap = bitmapOf(shape);
      bitmap.allocate(3);
      const copy = bitmapOf({ max: 10, reserved: shape.reserved });
      expect(copy.restore(bitmap.snapshot())).toBeUndefined();
      expect({ used: copy.used, has: copy.has(3) }).toEqual({ used: 1, has: true });
    });
  });

  test('touches the reserved band only when the band above it is full', () => {
    const bitmap = bitmapOf({ max: 128, reserved: 16 });
    for (let taken = 0; taken < 112; taken++) expect(bitmap.allocateNext()).toBeGreaterThanOrEqual(16);
    expect(bitmap.free).toBe(16);
    expect(numbersBelow(16).filter((item) => bitmap.has(item))).toEqual([]);
    expect(bitmap.allocateNext()).toBeLessThan(16);
    expect({ used: bitmap.used, free: bitmap.free }).toEqual({ used: 113, free: 15 });
  });

  test('allocates the last reserved item, and then none', () => {
    const bitmap = bitmapOf({ max: 128, reserved: 16 });
    for (const item of numbersBelow(15)) bitmap.allocate(item);
    for (let taken = 0; taken < 112; taken++) bitmap.allocateNext();
    expect(bitmap.free).toBe(1);
    expect(bitmap.allocateNext()).toBe(15);
    expect(bitmap.allocateNext()).toBeUndefined();
    expect(bitmap.free).toBe(0);
  });

  test('allocates 128 different items in 128 calls of allocateNext', () => {
    expect(allocateUntilFull(bitmapOf({ max: 128, reserved: 16 })).toSorted((a, b) => a - b)).toEqual(
      numbersBelow(128),
    );
  });

  test.each([-1, 8, 9, 2 ** 32])('refuses item %d of 8 with the error of the original', (item) => {
    expect(bitmapOf({ max: 8 }).allocate(item)).toMatchObject({
      code: 'NotInRange',
      message: `offset ${item} out of range [0,8]`,
    });
  });

  test.each([-1, 5, 8, 2 ** 32, 2 ** 32 + 3])('does nothing when item %d, which is not taken, is released', (item) => {
    const bitmap = bitmapOf({ max: 8 });
    bitmap.allocate(3);
    bitmap.release(item);
    expect([...bitmap.items()]).toEqual([3]);
    expect({ has: bitmap.has(item), used: bitmap.used }).toEqual({ has: false, used: 1 });
  });

  test('keeps and counts restored items that it could not allocate', () => {
    const bitmap = bitmapOf({ max: 8 });
    bitmap.restore({ range: 'test', data: fromBits([0, 8, 9, 10, 11, 12, 13, 14, 200]) });
    expect({ used: bitmap.used, free: bitmap.free, has: bitmap.has(200) }).toEqual({ used: 9, free: -1, has: true });
    expect(bitmap.allocateNext()).toBeUndefined();
    bitmap.release(200);
    expect([...bitmap.items()]).toEqual([0, 8, 9, 10, 11, 12, 13, 14]);
  });

  test('refuses the snapshot of another range, and keeps what it has', () => {
    const bitmap = bitmapOf({ max: 8 });
    bitmap.allocate(3);
    expect(bitmap.restore({ range: 'other', data: fromBits([5]) })).toMatchObject({
      code: 'MismatchedRange',
      message: 'the provided range does not match the current range',
    });
    expect([...bitmap.items()]).toEqual([3]);
  });

  test('has nothing to give when it has no items', () => {
    const bitmap = bitmapOf({ max: 0 });
    expect(bitmap.allocateNext()).toBeUndefined();
    expect(bitmap.allocate(0)).toBeInstanceOf(AllocatorError);
    expect(bitmap.snapshot().data).toHaveLength(0);
  });

  test.each([
    { numbers: [0], taken: [], item: 16, asked: [112], what: 'starts above the reserved band' },
    { numbers: [5], taken: [21, 22], item: 23, asked: [112], what: 'goes on to the first free item' },
    { numbers: [111], taken: [127, 16], item: 17, asked: [112], what: 'goes round within the band' },
    {
      numbers: [3, 15],
      taken: [...numbersBelow(112).map((at) => at + 16), 15],
      item: 0,
      asked: [112, 16],
      what: 'draws once more, and goes round, in the reserved band',
    },
  ])('$what', ({ numbers, taken, item, asked }) => {
    const script = scriptedPick(numbers);
    const bitmap = new AllocationBitmap({ max: 128, reserved: 16, spec: 'test', pick: script.pick });
    for (const each of taken) bitmap.allocate(each);
    expect(bitmap.allocateNext()).toBe(item);
    expect(script.asked).toEqual(asked);
  });

  test('draws nothing when it is full', () => {
    const script = scriptedPick([0]);
    const bitmap = new AllocationBitmap({ max: 2, spec: 'test', pick: script.pick });
    bitmap.allocate(0);
    bitmap.allocate(1);
    expect(bitmap.allocateNext()).toBeUndefined();
    expect(script.asked).toEqual([]);
  });
});
