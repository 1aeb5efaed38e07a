import { describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { HoldTerms } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type ConfiguredRange, configuredRange, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { MOST_HOLD_BYTES, readRange, saveRange, sizeOfHolds } from '../../lib/table/ranges.ts';
import { won } from '../contract/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { AT_ONCE } from '../support/at-once.ts';
import { found } from '../support/found.ts';
import { memoryTable } from '../support/memory-table.ts';
import { itemsIn, pickLowest, storedRange } from '../support/ranges.ts';

/* The tests in test/allocate cover requests to allocate, and crashes during such requests. */

const CIDR = 'fd00::/112';
const KEY = RANGE_KEYS.primary;
const EMPTY = storedRange({ range: CIDR, data: new Uint8Array(0) });
const HOLD: HoldTerms = { owner: 'team-a', untilMs: 900, takenUpBy: 'owner', requestId: 'r1' };

const RANGE: ConfiguredRange = { cluster: 'c', key: KEY, rangesGeneration: 1, text: CIDR, pick: pickLowest };

const over = (table: KeyValueTable, configured: Partial<ConfiguredRange> = {}) =>
  rangeAllocations(table, { ...RANGE, ...configured }, AT_ONCE);
/** Requests any free address. */
const NEXT = undefined;

async function newTable(stored: Partial<StoredRange> = {}): Promise<KeyValueTable> {
  const table = memoryTable();
  won(await saveRange(table, 'c', KEY, { ...EMPTY, ...stored }, undefined));
  return table;
}

async function saved(table: KeyValueTable): Promise<StoredRange> {
  return found(await readRange(table, 'c', KEY)).stored;
}

const takenIn = async (table: KeyValueTable) => itemsIn(await saved(table));

const MISMATCHED = { code: 'MismatchedRange', message: 'the provided range does not match the current range' };
const TOO_NEW = { code: 'NotReady', message: expect.stringMatching(/generation 3 of its spec, .* generation 2/) };
const NOT_READY = {
  code: 'NotReady',
  message: 'cannot allocate resources of type serviceipallocations at this time',
};

describe('Allocations from a stored range', () => {
  test('an allocation refuses an address outside the range, and a release reports such an address as not in the range', async () => {
    const table = await newTable({});
    const service = { service: { namespace: 'a', name: 'b' }, isNew: true, named: [], claim: { nowMs: () => 0 } };
    const items = [NEXT, 'fd00::'];
    for (const refusal of [await over(table).allocate(items), await over(table).allocateFor(items, service)]) {
      expect(refusal).toMatchObject({
        index: 1,
        code: 'NotInRange',
        message: 'the provided IP (fd00::) is not in the valid range. The range of valid IPs is fd00::/112',
      });
    }
    expect(await over(table).release(['10.0.0.1'])).toEqual([{ item: '10.0.0.1', outcome: 'notInRange' }]);
  });

  test.each<[string, Partial<StoredRange> | undefined, number, object]>([
    ['that no pass has saved', undefined, 1, NOT_READY],
    ['with another CIDR', { range: 'fd01::/112' }, 1, MISMATCHED],
    ['that an audit saved instead of a pass with allocator: table', { allocator: 'apiserver' }, 1, NOT_READY],
    ['of an older generation of the spec', { generation: 1 }, 2, NOT_READY],
    ['of an older generation of the spec and with another CIDR', { generation: 1, range: 'fd01::/112' }, 2, NOT_READY],
    ['of a newer generation of the spec', { generation: 3 }, 2, TOO_NEW],
  ])('a range %s refuses every operation and is not written', async (_, stored, rangesGeneration, refusal) => {
    const table = stored === undefined ? memoryTable() : await newTable({ data: fromBits([1]), ...stored });
    const before = await table.get('c', KEY);
    const allocations = over(table, { rangesGeneration });
    const service = { namespace: 'a', name: 'b' };
    for (const refused of [
      await allocations.allocate([NEXT]),
      await allocations.allocateFor([NEXT], { service, isNew: true, named: [], claim: { nowMs: () => 0 } }),
      await allocations.release(['fd00::2']),
      await allocations.heldBy('r1'),
      await allocations.lookUp(['fd00::2']),
    ]) {
      expect(refused).toMatchObject({ outcome: 'refused', ...refusal });
    }
    expect(await table.get('c', KEY)).toEqual(before);
  });

  test('an invalid range in a stored spec causes an error with the code Unparsable', async () => {
    const spec = aClusterSpec({ serviceClusterIPRanges: ['10.0.0.0/99'], serviceNodePortRange: '9-1' });
    for (const key of [KEY, RANGE_KEYS.nodePorts]) {
      const range = found(configuredRange({ spec, rangesGeneration: 1 }, key, pickLowest));
      const allocated = over(await newTable(), { text: range.text, key: KEY }).allocate([NEXT]);
      await expect(allocated).rejects.toMatchObject({ code: 'Unparsable' });
    }
  });

  test('a release accepts addresses in any spelling, returns them in canonical form, and removes their holds and strikes', async () => {
    const strikes = { once: fromBits([4, 5]), twice: fromBits([4]), last: { atMs: 1, passId: 'p' } };
    const hold = { ...HOLD, items: ['fd00::7', 'fd00::8'] };
    const table = await newTable({ data: fromBits([4, 5, 6, 7]), strikes, holds: [hold] });
    const released = await over(table).release(['FD00:0::5', 'fd00::5', 'FD00:0::7', 'fd00::9', '10.0.0.1']);
    expect(released).toEqual([
      { item: 'fd00::5', outcome: 'released' },
      { item: 'fd00::5', outcome: 'free' },
      { item: 'fd00::7', outcome: 'released' },
      { item: 'fd00::9', outcome: 'free' },
      { item: '10.0.0.1', outcome: 'notInRange' },
    ]);
    expect(await saved(table)).toEqual({
      ...EMPTY,
      data: fromBits([5, 7]),
      strikes: { ...strikes, once: fromBits([5]), twice: new Uint8Array(0) },
      holds: [{ ...HOLD, items: ['fd00::8'] }],
    });
    const before = await table.get('c', KEY);
    expect(await over(table).release(['fd00::5'])).toEqual([{ item: 'fd00::5', outcome: 'free' }]);
    expect(await table.get('c', KEY)).toEqual(before);
  });
});

test('a release with a request id frees only the addresses that this request still holds', async () => {
  const holds = ['r1', 'r2'].map((requestId, n) => ({ ...HOLD, requestId, items: [`fd00::${n + 1}`] }));
  const table = await newTable({ data: fromBits([0, 1, 2]), holds });
  await over(table).release(['fd00::1', 'fd00::2', 'fd00::3'], { requestId: 'r1' });
  expect(await takenIn(table)).toEqual(['fd00::2', 'fd00::3']);
});

test('a hold that ends between two attempts to write the range is not claimed', async () => {
  const stored = await newTable({ data: fromBits([0]), holds: [{ ...HOLD, items: ['fd00::1'] }] });
  let nowMs = 899;
  const put: KeyValueTable['put'] = async (item, previous) => {
    if (nowMs === 900) return stored.put(item, previous);
    nowMs = 900;
    return { outcome: 'lost' };
  };
  const claim = { nowMs: () => nowMs, holdOwner: 'team-a' };
  const allocated = await over({ ...stored, put }).allocate(['fd00::1'], { claim });
  expect(allocated).toMatchObject({ code: 'AlreadyAllocated' });
});

const retry = { hold: HOLD };

test('a retry of a request gets the items that the request still holds, whatever their order, and allocates only missing items', async () => {
  const table = await newTable();
  const wanted = [NEXT, 'fd00::101', NEXT] as const;
  const items = ['fd00::102', 'fd00::101', 'fd00::103'];
  expect(await over(table).allocate(wanted, retry)).toEqual({ outcome: 'allocated', items });
  const before = await table.get('c', KEY);
  expect(await over(table).allocate(wanted, retry)).toEqual({ outcome: 'allocated', items });
  const twice = await over(table).allocate(['FD00:0::101', 'fd00::101', NEXT], retry);
  expect(twice).toMatchObject({ index: 1, code: 'AlreadyAllocated' });
  expect(await table.get('c', KEY)).toEqual(before);
  await over(table).release(['fd00::101']);
  await over(table).allocate(['fd00::3', NEXT, NEXT, NEXT], retry);
  expect(await takenIn(table)).toEqual(['fd00::3', 'fd00::101', 'fd00::102', 'fd00::103']);
  expect(await over(table).heldBy('r1')).toEqual(['fd00::102', 'fd00::103', 'fd00::3', 'fd00::101']);
});

test.each([
  ['another request', { hold: { ...HOLD, requestId: 'r2' } }],
  ['a caller without a request', {}],
])('%s does not get the items that a request holds', async (_, options) => {
  const table = await newTable();
  await over(table).allocate(['fd00::1'], retry);
  expect(await over(table).allocate(['fd00::1'], options)).toMatchObject({ code: 'AlreadyAllocated' });
});

const aHold = (index: number) => ({
  owner: `team-${index}-${'x'.repeat(50)}`,
  takenUpBy: 'any' as const,
  requestId: `r${index}${'y'.repeat(55)}`,
});
const ownHolds = (many: number) =>
  Array.from({ length: many }, (_, index) => ({ ...aHold(index), items: [`fd00::${(4096 + index).toString(16)}`] }));

test('in a /24 range, each address can be held by a separate request', () => {
  const longest = Array.from({ length: 254 }, (_, index) => ({
    owner: 'o'.repeat(63),
    takenUpBy: 'owner' as const,
    requestId: `${index}`.padEnd(63, 'r'),
    untilMs: Date.UTC(9999, 0),
    items: ['255.255.255.255'],
  }));
  expect(sizeOfHolds(longest)).toBeLessThan(MOST_HOLD_BYTES);
});

test('if a range has no room for another hold, an allocation with a hold is refused, and an allocation without a hold succeeds', async () => {
  let many = 1;
  while (sizeOfHolds(ownHolds(many + 1)) <= MOST_HOLD_BYTES) many++;
  const data = fromBits(Array.from({ length: many }, (_, index) => 4095 + index));
  const full = { ...EMPTY, data, holds: ownHolds(many) };
  const table = await newTable(full);
  const refusal = await over(table).allocate([NEXT], { hold: aHold(many) });
  const message = expect.stringContaining('room for 65536: release some');
  expect(refusal).toMatchObject({ outcome: 'refused', code: 'HoldsFull', message });
  expect(refusal).not.toHaveProperty('index');
  expect(await saved(table)).toEqual(full);
  expect(await over(table).allocate([NEXT])).toMatchObject({ outcome: 'allocated' });
  expect(await over(table).release(['fd00::1000'])).toMatchObject([{ outcome: 'released' }]);
  expect(await over(table).allocate([NEXT], { hold: aHold(many) })).toMatchObject({ outcome: 'allocated' });
});
