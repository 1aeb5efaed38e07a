import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AllocationBitmap } from '../../lib/allocator/bitmap.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { scriptedPick, seededPick } from '../support/ranges.ts';

const numbersBelow = (end: number) => Array.from({ length: end }, (_, number) => number);

type Step = (bitmap: AllocationBitmap, model: Set<number>, item: number) => void;

const STEPS = {
  allocate(bitmap, model, item) {
    const possible = item >= 0 && item < bitmap.max && !model.has(item);
    if (possible) model.add(item);
    expect(bitmap.allocate(item) === true).toBe(possible);
  },
  allocateNext(bitmap, model) {
    const next = bitmap.allocateNext();
    expect(next === undefined).toBe(model.size >= bitmap.max);
    if (next === undefined) return;
    expect(model.has(next)).toBe(false);
    model.add(next);
  },
  release(bitmap, model, item) {
    model.delete(item);
    bitmap.release(item);
  },
  restore(bitmap) {
    expect(bitmap.restore(bitmap.snapshot())).toBeUndefined();
  },
} satisfies Record<string, Step>;

/** The scan of the original, bit by bit. */
function scanned(
  taken: ReadonlySet<number>,
  max: number,
  reserved: number,
  picks: readonly number[],
): number | undefined {
  if (taken.size >= max) return undefined;
  const bands = [
    { low: reserved, size: max - reserved },
    { low: 0, size: reserved },
  ].filter(({ size }) => size > 0);
  for (const [index, { low, size }] of bands.entries()) {
    const start = (picks[index] ?? 0) % size;
    for (let step = 0; step < size; step++) {
      const item = low + ((start + step) % size);
      if (!taken.has(item)) return item;
    }
  }
  return undefined;
}

const shape = fc
  .oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 900, max: 2100 }), fc.constant(33_000))
  .chain((max) => fc.record({ max: fc.constant(max), reserved: fc.integer({ min: 0, max: Math.min(max, 300) }) }));

describe('Whatever is done to an allocation bitmap', () => {
  test('it holds what a set would hold', () => {
    const step = fc.record({
      action: fc.constantFrom('allocate', 'allocateNext', 'release', 'restore'),
      item: fc.integer({ min: -2, max: 110 }),
    });
    fc.assert(
      fc.property(fc.nat(100), fc.nat(40), fc.array(step), (max, reserved, steps) => {
        const bitmap = new AllocationBitmap({ max, reserved, spec: 'test', pick: seededPick(7) });
        const model = new Set<number>();
        for (const { action, item } of steps) STEPS[action](bitmap, model, item);

        const items = [...model].toSorted((a, b) => a - b);
        expect([...bitmap.items()]).toEqual(items);
        expect({ used: bitmap.used, free: bitmap.free }).toEqual({ used: items.length, free: max - items.length });
        expect(items.every((item) => bitmap.has(item))).toBe(true);
        expect(bitmap.snapshot()).toEqual({ range: 'test', data: fromBits(items) });
      }),
    );
  });

  test('allocateNext finds what a scan bit by bit would find for the same numbers', () => {
    const fill = fc.record({ holes: fc.array(fc.nat(), { maxLength: 4 }), from: fc.nat(), length: fc.nat() });
    fc.assert(
      fc.property(shape, fill, fc.nat(), fc.nat(), ({ max, reserved }, { holes, from, length }, first, second) => {
        const filled = numbersBelow(length % (max + 1)).map((at) => (from + at) % max);
        const free = new Set(holes.map((hole) => hole % max));
        const taken = new Set(filled.filter((item) => !free.has(item)));
        const script = scriptedPick(max > reserved ? [first, second] : [second, second]);
        const bitmap = new AllocationBitmap({ max, reserved, spec: 'test', pick: script.pick });
        bitmap.restore({ range: 'test', data: fromBits(taken) });
        const picks = max > reserved ? [first, second] : [second];
        expect(bitmap.allocateNext()).toBe(scanned(taken, max, reserved, picks));
      }),
    );
  });

  test('the last free item of a full bitmap is found wherever it is', () => {
    fc.assert(
      fc.property(shape, fc.nat(), fc.nat(), ({ max, reserved }, hole, seed) => {
        const bitmap = new AllocationBitmap({ max, reserved, spec: 'test', pick: seededPick(seed) });
        for (const item of numbersBelow(max)) bitmap.allocate(item);
        bitmap.release(hole % max);
        expect(bitmap.allocateNext()).toBe(hole % max);
        expect(bitmap.allocateNext()).toBeUndefined();
      }),
      { numRuns: 40 },
    );
  });
});
