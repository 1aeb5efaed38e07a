import { describe, expect, test } from '@jest/globals';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import type { ConfiguredRange } from '../../lib/range/configured-range.ts';
import type { Hold, HoldTerms } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { MOST_HOLD_BYTES, readRange, saveRange, sizeOfHolds } from '../../lib/table/ranges.ts';
import { won } from '../contract/key-value-table.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { memoryTable } from '../support/memory-table.ts';
import { allocationsOf, ipRange, made, pickLowest } from '../support/ranges.ts';

const KEY = RANGE_KEYS.nodePorts;
/** A range whose static band is 30000 to 30015. */
const PORTS = '30000-30127';
const NONE = new Uint8Array(0);
const HOLD: HoldTerms = { owner: 'team-a', untilMs: 900, takenUpBy: 'owner', requestId: 'r1' };
const EMPTY = storedRange({ range: PORTS, data: NONE });

/** The default range of a cluster. */
const WIDE = '30000-32767';

const ports = () => portsOf(PORTS);
const widePorts = () => portsOf(WIDE);

function portsOf(text: string): RangeAllocator<number> {
  return made(portRangeOf(text, pickLowest));
}

const RANGE: ConfiguredRange<number> = {
  cluster: 'c',
  key: KEY,
  rangesGeneration: 1,
  emptyAllocator: ports,
};

const over = (table: KeyValueTable, attempts = 8) => allocationsOf(table, RANGE, { ...AT_ONCE, attempts });
const values = (...wanted: number[]) => wanted.map((value) => ({ value }));

async function saved(table: KeyValueTable): Promise<StoredRange> {
  const read = await readRange(table, 'c', KEY);
  if (read === undefined) throw new Error('expected a range');
  return read.stored;
}

async function takenIn(table: KeyValueTable): Promise<number[]> {
  return [...bitsOf((await saved(table)).data)].map((bit) => 30_000 + bit);
}

/** Returns a table, and the keys of its writes. */
function counting(table: KeyValueTable) {
  const writes: string[] = [];
  const counted: KeyValueTable = {
    ...table,
    put: (content, previous) => {
      writes.push(content.key);
      return table.put(content, previous);
    },
  };
  return { counted, writes };
}

async function newTable(stored: Partial<StoredRange> = {}): Promise<KeyValueTable> {
  const table = memoryTable();
  won(await saveRange(table, 'c', KEY, { ...EMPTY, ...stored }, undefined));
  return table;
}

describe('an allocation of several ports', () => {
  test('one write allocates several ports, beginning with the requested values, and returns them in the order of the request', async () => {
    const table = await newTable();
    const { counted, writes } = counting(table);
    const wanted = ['next', { value: 30_016 }, 'next', { value: 30_001 }] as const;
    expect(await over(counted).allocate(wanted, { hold: HOLD })).toEqual({
      outcome: 'allocated',
      items: [30_017, 30_016, 30_018, 30_001],
    });
    expect(writes).toEqual([KEY]);
    expect(await takenIn(table)).toEqual([30_001, 30_016, 30_017, 30_018]);
    expect((await saved(table)).holds).toEqual([{ ...HOLD, items: ['30017', '30016', '30018', '30001'] }]);
  });

  test.each([
    { why: 'one is taken', wanted: values(30_001, 30_002, 30_003), index: 1, code: 'AlreadyAllocated' },
    { why: 'one is requested twice', wanted: values(30_004, 30_005, 30_004), index: 2, code: 'AlreadyAllocated' },
    { why: 'one is outside the range', wanted: values(30_004, 29_999), index: 1, code: 'NotInRange' },
    {
      why: 'too few are free',
      wanted: [...values(30_001), ...Array<'next'>(127).fill('next')],
      index: 127,
      code: 'Full',
    },
  ])('all ports are refused when $why', async ({ wanted, index, code }) => {
    const table = await newTable({ data: fromBits([2]) });
    const before = await table.get('c', KEY);
    const refused = await over(table).allocate(wanted, { hold: HOLD });
    expect(refused).toMatchObject({ outcome: 'refused', index, code });
    expect(await table.get('c', KEY)).toEqual(before);
  });

  test('a release removes ports with their holds, and does not return free ports', async () => {
    const table = await newTable({ data: fromBits([1, 2, 3]), holds: [{ ...HOLD, items: ['30001', '30003'] }] });
    const { counted, writes } = counting(table);
    expect(await over(counted).release([30_001, 30_002, 30_009, 29_999])).toEqual({
      released: [30_001, 30_002],
      kept: [],
    });
    expect(writes).toEqual([KEY]);
    expect(await takenIn(table)).toEqual([30_003]);
    expect((await saved(table)).holds).toEqual([{ ...HOLD, items: ['30003'] }]);
  });

  test('a release for a request releases only the ports that it still holds', async () => {
    const table = await newTable({
      data: fromBits([1, 2, 3, 4]),
      holds: [
        { ...HOLD, items: ['30001', '30004'] },
        { ...HOLD, requestId: 'r2', items: ['30003'] },
      ],
    });
    expect(await over(table).heldBy('r1')).toEqual([30_001, 30_004]);
    expect(await over(table).release([30_001, 30_002, 30_003], { requestId: 'r1' })).toEqual({
      released: [30_001],
      kept: [30_002, 30_003],
    });
    expect(await takenIn(table)).toEqual([30_002, 30_003, 30_004]);
    expect(await over(table).heldBy('r1')).toEqual([30_004]);
    expect(await over(table).heldBy('r3')).toEqual([]);
  });
});

describe('a retry of the same request', () => {
  const retry = { hold: HOLD, isRetry: true };

  test.each([
    { what: 'values', wanted: values(30_001, 30_002), items: [30_001, 30_002] },
    { what: 'any items', wanted: ['next', 'next'] as const, items: [30_016, 30_017] },
    {
      what: 'values and any items',
      wanted: ['next', { value: 30_016 }, 'next'] as const,
      items: [30_017, 30_016, 30_018],
    },
  ])('a retry of a request for $what returns the same items and writes nothing', async ({ wanted, items }) => {
    const { counted, writes } = counting(await newTable());
    expect(await over(counted).allocate(wanted, retry)).toEqual({ outcome: 'allocated', items });
    expect(await over(counted).allocate(wanted, retry)).toEqual({ outcome: 'allocated', items });
    expect(writes).toEqual([KEY]);
  });

  test('a retry of the same request allocates only missing items, and adds them to the hold of the present ones', async () => {
    const table = await newTable();
    await over(table).allocate(values(30_001, 30_002), retry);
    await over(table).releaseOne(30_001);
    await over(table).allocate([{ value: 30_003 }, 'next', 'next'], retry);
    expect(await takenIn(table)).toEqual([30_002, 30_003, 30_016]);
    expect((await saved(table)).holds).toEqual([{ ...HOLD, items: ['30002', '30003', '30016'] }]);
  });

  test('only a retry of the same request may get its present items, and it gets each of them once', async () => {
    const table = await newTable();
    await over(table).allocate(values(30_001), retry);
    const others = { hold: { ...HOLD, requestId: 'r2' }, isRetry: true };
    expect(await over(table).allocate(values(30_001), others)).toMatchObject({ code: 'AlreadyAllocated' });
    expect(await over(table).allocate(values(30_001, 30_001), retry)).toMatchObject({
      index: 1,
      code: 'AlreadyAllocated',
    });
    expect(await over(table).allocate(values(30_001), { hold: HOLD })).toMatchObject({
      code: 'AlreadyAllocated',
    });
  });

  test('a retry of the same request keeps the present items if the other items are refused', async () => {
    const table = await newTable({ data: fromBits([2]) });
    await over(table).allocate(values(30_001), retry);
    const before = await table.get('c', KEY);
    expect(await over(table).allocate(values(30_001, 30_002), retry)).toMatchObject({ outcome: 'refused', index: 1 });
    expect(await table.get('c', KEY)).toEqual(before);
  });
});

describe('a held item', () => {
  const held = { data: fromBits([1]), holds: [{ ...HOLD, items: ['30001'] }] };

  test('a held item is refused to every caller, even after the end of its hold', async () => {
    const table = await newTable(held);
    expect(await over(table).allocateOne(30_001)).toMatchObject({ code: 'AlreadyAllocated' });
    expect(await over(table).allocate(values(30_001), { hold: HOLD })).toMatchObject({ outcome: 'refused', index: 0 });
  });

  test('a held item is claimed only if its hold is exactly the expected one', async () => {
    const table = await newTable(held);
    const [hold] = held.holds;
    if (hold === undefined) throw new Error('expected a hold');
    const claim = { holdOwner: 'team-a', nowMs: 0 };
    for (const expected of [[], [{ ...hold, untilMs: 901 }], [{ ...hold, items: ['30099'] }]]) {
      const refused = await over(table).allocate(values(30_001), { claim: { ...claim, expected } });
      expect(refused).toMatchObject({ code: 'AlreadyAllocated' });
    }
    const expected = [hold];
    expect(await over(table).allocate(values(30_001), { claim: { ...claim, expected } })).toMatchObject({
      outcome: 'allocated',
    });
  });
});

describe('the limit of 64 KB for holds', () => {
  /** Returns holds with different owners. */
  function ownHolds(many: number): Hold[] {
    return Array.from({ length: many }, (_, index) => ({
      ...aHold(index),
      items: [String(30_016 + index)],
    }));
  }
  const aHold = (index: number) => ({
    owner: `team-${index}-${'x'.repeat(50)}`,
    takenUpBy: 'any' as const,
    requestId: `r${index}${'y'.repeat(55)}`,
  });

  test('each address of a /24 can be held by its own request', () => {
    const longest = Array.from({ length: 254 }, (_, index) => ({
      owner: 'o'.repeat(63),
      takenUpBy: 'owner' as const,
      requestId: `${index}`.padEnd(63, 'r'),
      untilMs: Date.UTC(9999, 0),
      items: ['255.255.255.255'],
    }));
    expect(sizeOfHolds(longest)).toBeLessThan(MOST_HOLD_BYTES);
  });

  test('an allocation with a hold beyond the limit is refused, and items without a hold are still allocated', async () => {
    let many = 1;
    while (sizeOfHolds(ownHolds(many + 1)) <= MOST_HOLD_BYTES) many++;
    const data = fromBits(Array.from({ length: many }, (_, index) => 16 + index));
    const full = { ...EMPTY, range: WIDE, data, holds: ownHolds(many) };
    const table = await newTable(full);
    const allocations = allocationsOf(table, { ...RANGE, emptyAllocator: widePorts }, AT_ONCE);
    const refusal = await allocations.allocate(['next'], { hold: aHold(many) });
    expect(refusal).toMatchObject({
      outcome: 'refused',
      code: 'HoldsFull',
      message: expect.stringMatching(/room for 65536: release some/),
    });
    expect(refusal).not.toHaveProperty('index');
    expect(await saved(table)).toEqual(full);
    expect(await allocations.allocateNext()).toMatchObject({ item: expect.any(Number) });
    expect(await allocations.releaseOne(30_016)).toBeUndefined();
    expect(await allocations.allocate(['next'], { hold: aHold(many) })).toMatchObject({ outcome: 'allocated' });
  });
});

test('released items are returned in canonical form', async () => {
  const table = await newTable({ range: 'fd00::/120', data: fromBits([4]) });
  const allocations = allocationsOf(table, { ...RANGE, emptyAllocator: () => ipRange('fd00::/120') }, AT_ONCE);
  expect(await allocations.release(['FD00:0::5', 'fd00::5', 'fd00::6'])).toEqual({
    released: ['fd00::5'],
    kept: [],
  });
  expect(await takenIn(table)).toEqual([]);
});
