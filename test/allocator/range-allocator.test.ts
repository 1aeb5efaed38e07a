import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parsePortInterval, portIntervalText } from '../../lib/allocator/port-range.ts';
import { type PickIndex, RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, refused } from '../../lib/allocator/refusal.ts';
import { bitsOf, fromBits, hasBit, intersect, popCount, subtract, union } from '../../lib/allocator/snapshot-bytes.ts';
import { itemsOf, portRange, scriptedPick, seededPick } from '../support/ranges.ts';

const numbersBelow = (end: number) => Array.from({ length: end }, (_, number) => number);

/** Returns a range whose items are the numbers from 0 to `max` - 1. */
function numbered(max: number, reserved: number, pick: PickIndex = seededPick(7)): RangeAllocator {
  const numbers = {
    spec: `0-${max - 1}`,
    max,
    reserved,
    indexOf: (item: string) => (Number(item) < max ? Number(item) : undefined),
    itemAt: String,
    notInRange: () => refused('NotInRange', 'test'),
    alreadyAllocated: () => refused('AlreadyAllocated', 'test'),
  };
  return new RangeAllocator(numbers, pick);
}

const nextOf = (range: RangeAllocator): number | undefined => {
  const next = range.allocateNext();
  return isRefused(next) ? undefined : Number(next.item);
};

type Step = (range: RangeAllocator, model: Set<number>, item: number) => void;

const STEPS = {
  allocate(range, model, item) {
    expect(range.allocate(`${item}`) === undefined).toBe(!model.has(item));
    model.add(item);
  },
  allocateNext(range, model) {
    const isFull = range.free <= 0;
    const next = nextOf(range);
    expect(next === undefined).toBe(isFull);
    if (next === undefined) return;
    expect(model.has(next)).toBe(false);
    model.add(next);
  },
  release(range, model, item) {
    model.delete(item);
    range.release(`${item}`);
  },
  restore(range) {
    range.restore(range.snapshot().data);
  },
} satisfies Record<string, Step>;

/** Returns the item that the bit-by-bit scan of upstream finds. */
function scanned(taken: ReadonlySet<number>, max: number, reserved: number, pick: PickIndex): number | undefined {
  if (taken.size >= max) return undefined;
  const bands = [
    { low: reserved, size: max - reserved },
    { low: 0, size: reserved },
  ];
  for (const { low, size } of bands.filter((band) => band.size > 0)) {
    const start = pick(size);
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

describe('A range after any operations', () => {
  test('a range has the same items as a JavaScript Set after the same operations, even after a restore from a larger range', () => {
    const step = fc.tuple(fc.constantFrom('allocate', 'allocateNext', 'release', 'restore'), fc.nat());
    const restored = fc.uniqueArray(fc.nat(120), { maxLength: 20 });
    fc.assert(
      fc.property(fc.nat(99), fc.nat(140), restored, fc.array(step), (below, reserved, before, steps) => {
        const max = below + 1;
        const range = numbered(max, Math.min(reserved, max));
        if (before.length > 0) range.restore(fromBits(before));
        const model = new Set<number>(before);
        for (const [action, item] of steps) STEPS[action](range, model, item % max);

        const items = [...model].toSorted((a, b) => a - b);
        expect(itemsOf(range)).toEqual(items.map(String));
        expect({ used: range.used, free: range.free }).toEqual({ used: items.length, free: max - items.length });
        expect(items.filter((item) => item < max).every((item) => range.has(`${item}`))).toBe(true);
        expect(range.snapshot().data).toEqual(fromBits(items));
      }),
    );
  });

  test("allocateNext allocates the same item as upstream's bit-by-bit scan with the same random numbers", () => {
    // In a quarter of the ranges, all items except `holes` are allocated.
    const length = fc.oneof({ weight: 3, arbitrary: fc.nat() }, fc.constant(undefined));
    const fill = fc.record({ holes: fc.array(fc.nat(), { maxLength: 4 }), from: fc.nat(), length });
    fc.assert(
      fc.property(shape, fill, fc.nat(), fc.nat(), ({ max, reserved }, { holes, from, length }, first, second) => {
        const filled = numbersBelow(length === undefined ? max : length % (max + 1)).map((at) => (from + at) % max);
        const free = new Set(holes.map((hole) => hole % max));
        const taken = new Set(filled.filter((item) => !free.has(item)));
        const [ours, upstreams] = [scriptedPick([first, second]), scriptedPick([first, second])];
        const range = numbered(max, reserved, ours.pick);
        range.restore(fromBits(taken));
        expect(nextOf(range)).toBe(scanned(taken, max, reserved, upstreams.pick));
        expect(ours.asked).toEqual(upstreams.asked);
      }),
    );
  });
});

describe('The bytes of a snapshot', () => {
  const sets = fc.uniqueArray(fc.integer({ min: 0, max: 400 })).map((bits) => new Set(bits));
  const ascending = (...bits: number[]) => [...new Set(bits)].toSorted((a, b) => a - b);

  test('set operations on snapshot bytes have the same results as on JavaScript sets', () => {
    fc.assert(
      fc.property(sets, sets, fc.integer({ min: 0, max: 401 }), (one, other, bit) => {
        const [a, b] = [fromBits(one), fromBits(other)];
        expect([...bitsOf(union(a, b))]).toEqual(ascending(...one, ...other));
        expect([...bitsOf(intersect(a, b))]).toEqual(ascending(...one).filter((each) => other.has(each)));
        expect([...bitsOf(subtract(a, b))]).toEqual(ascending(...one).filter((each) => !other.has(each)));
        expect(hasBit(a, bit)).toBe(one.has(bit));
        expect(popCount(a)).toBe(one.size);
      }),
    );
  });
});

/* The golden cases test the operations of a range of node ports, and the most common texts of port ranges. */

describe('A range of node ports', () => {
  const OUTSIDE = ['1', '20000', '10201', '9999', '-2', '10000.5', 'NaN'];
  test.each(OUTSIDE)('the ports 10000 to 10200 do not contain %s', (port) => {
    const range = portRange('10000-10200');
    range.release(port);
    const message = 'provided port is not in the valid range. The range of valid ports is 10000-10200';
    expect(range.allocate(port)).toMatchObject({ code: 'NotInRange', message });
    expect([range.has(port), range.indexOf(port), range.used]).toEqual([false, undefined, 0]);
  });

  test('a range of zero ports is full', () => {
    expect(portRange('').allocateNext()).toMatchObject({ code: 'Full', message: 'range is full' });
  });
});

describe('A port range', () => {
  test.each([
    { text: '65535', base: 65_535, size: 1, shown: '65535-65535' },
    { text: '5++3', base: 5, size: 4, shown: '5-8' },
    { text: ' \t80-90\n', base: 80, size: 11, shown: '80-90' },
    { text: '  ', base: 0, size: 0, shown: '' },
  ])('the port range "$text" has $size ports from $base, and is printed as "$shown"', ({ text, base, size, shown }) => {
    const interval = parsePortInterval(text);
    expect(interval).toEqual({ base, size });
    expect(isRefused(interval) ? undefined : portIntervalText(interval)).toBe(shown);
  });

  test.each([
    { text: '80-', message: 'strconv.Atoi: parsing "": invalid syntax' },
    { text: '+80', message: 'strconv.Atoi: parsing "": invalid syntax' },
    { text: '0x50', message: 'strconv.Atoi: parsing "0x50": invalid syntax' },
    { text: '99999999999999999999', message: 'strconv.Atoi: parsing "99999999999999999999": value out of range' },
    { text: '1-2+3', message: 'unable to parse port range: 1-2+3' },
    { text: '+1-3', message: 'unable to parse port range: +1-3' },
    { text: '9223372036854775808', message: 'strconv.Atoi: parsing "9223372036854775808": value out of range' },
    { text: '65536', message: 'the port range cannot be greater than 65535: 65536' },
    { text: '65535+1', message: 'the port range cannot be greater than 65535: 65535+1' },
    { text: '5--3', message: 'end port cannot be less than start port: 5--3' },
  ])('"$text" is not a port range: $message', ({ text, message }) => {
    expect(parsePortInterval(text)).toMatchObject({ code: 'Unparsable', message });
  });
});
