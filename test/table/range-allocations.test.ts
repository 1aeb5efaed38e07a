import { describe, expect, test } from '@jest/globals';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { addressRange, type ConfiguredRange, nodePortRange } from '../../lib/range/configured-range.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { won } from '../contract/key-value-table.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { memoryTable } from '../support/memory-table.ts';
import { allocationsOf, ipRange, itemsIn } from '../support/ranges.ts';

const CIDR = '192.168.1.0/24';
const IP = '192.168.1.2';
const NOT_READY = 'cannot allocate resources of type serviceipallocations at this time';

const RANGE: ConfiguredRange<string> = {
  cluster: 'c',
  key: RANGE_KEYS.primary,
  rangesGeneration: 1,
  emptyAllocator: () => ipRange(CIDR),
};

const EMPTY = storedRange({ range: CIDR, data: new Uint8Array(0) });

async function save(table: KeyValueTable, stored: StoredRange = EMPTY): Promise<void> {
  won(await saveRange(table, 'c', RANGE.key, stored, await table.get('c', RANGE.key)));
}

async function saved(table: KeyValueTable): Promise<StoredRange> {
  const read = await readRange(table, 'c', RANGE.key);
  if (read === undefined) throw new Error('expected a range');
  return read.stored;
}

async function takenIn(table: KeyValueTable): Promise<string[]> {
  return itemsIn(await saved(table)).map(String);
}

/** A table that must not be read or written. */
const UNASKED: KeyValueTable = { get: unasked, list: unasked, put: unasked, delete: unasked };

function unasked(): never {
  throw new Error('the table was asked');
}

describe('Allocations of cluster IPs', () => {
  test('an allocation is refused until a pass has saved the range', async () => {
    const table = memoryTable();
    const allocations = allocationsOf(table, RANGE, AT_ONCE);
    const refusals = [
      await allocations.allocateOne(IP),
      await allocations.allocateNext(),
      await allocations.releaseOne(IP),
    ];
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'NotReady', message: NOT_READY });
    expect(await table.list('c', '')).toEqual([]);
  });

  test('an allocation is written to the table, where every other caller sees it', async () => {
    const table = memoryTable();
    await save(table);
    const [one, other] = [1, 2].map(() => allocationsOf(table, RANGE, AT_ONCE));
    expect(await one?.allocateOne(IP)).toBeUndefined();
    expect([...bitsOf((await saved(table)).data)]).toEqual([1]);
    expect((await saved(table)).range).toBe(CIDR);
    const taken = { code: 'AlreadyAllocated', message: 'provided IP is already allocated' };
    expect(await one?.allocateOne(IP)).toMatchObject(taken);
    expect(await other?.allocateOne(IP)).toMatchObject(taken);
    expect(await takenIn(table)).toEqual([IP]);
  });

  test('an address outside the range is refused without a read of the table', async () => {
    const refusal = await allocationsOf(UNASKED, RANGE, AT_ONCE).allocateOne('192.168.0.0');
    expect(refusal).toMatchObject({
      code: 'NotInRange',
      message: 'the provided IP (192.168.0.0) is not in the valid range. The range of valid IPs is 192.168.1.0/24',
    });
  });

  test('an allocation depends only on the table, not on earlier calls of the process', async () => {
    const table = memoryTable();
    await save(table);
    const local = ipRange(CIDR);
    const allocations = allocationsOf(table, { ...RANGE, emptyAllocator: () => local }, AT_ONCE);
    expect(local.allocate(IP)).toBeUndefined();
    expect(await allocations.allocateOne(IP)).toBeUndefined();
    local.release(IP);
    expect(await allocations.allocateOne(IP)).toMatchObject({ code: 'AlreadyAllocated' });
    expect(await takenIn(table)).toEqual([IP]);
  });
});

describe('a range of another spec', () => {
  test.each<[string, Partial<StoredRange>, Partial<ConfiguredRange<string>>, object]>([
    [
      'with another CIDR',
      { range: '192.168.2.0/24' },
      {},
      { code: 'MismatchedRange', message: 'the provided range does not match the current range' },
    ],
    ['that an audit saved', { allocator: 'apiserver' }, {}, { code: 'NotReady', message: NOT_READY }],
    ['of an older generation', { generation: 1 }, { rangesGeneration: 2 }, { code: 'NotReady', message: NOT_READY }],
    [
      'of an older generation and another CIDR',
      { generation: 1, range: '192.168.2.0/24' },
      { rangesGeneration: 2 },
      { code: 'NotReady', message: NOT_READY },
    ],
    [
      'of a newer generation',
      { generation: 3 },
      { rangesGeneration: 2 },
      { code: 'NotReady', message: expect.stringMatching(/generation 3 of its spec, and this is generation 2/) },
    ],
  ])('a range %s refuses every operation and is not written', async (_, stored, configured, refusal) => {
    const table = memoryTable();
    await save(table, { ...EMPTY, data: fromBits([1]), ...stored });
    const before = await table.get('c', RANGE.key);
    const allocations = allocationsOf(table, { ...RANGE, ...configured }, AT_ONCE);
    const service = { namespace: 'a', name: 'b' };
    for (const refused of [
      await allocations.allocate(['next']),
      await allocations.allocateFor(['next'], { service, isNew: true, named: [], claim: { nowMs: 0 } }),
      await allocations.release([IP]),
      await allocations.heldBy('r1'),
      await allocations.lookUp([IP]),
    ]) {
      expect(refused).toMatchObject({ outcome: 'refused', ...refusal });
    }
    expect(await table.get('c', RANGE.key)).toEqual(before);
  });

  test('a stored spec with an invalid range causes an error with a code', () => {
    const spec = aClusterSpec({ serviceClusterIPRanges: ['10.0.0.0/99'], serviceNodePortRange: '9-1' });
    const cluster = { spec, rangesGeneration: 1 };
    const coded = expect.objectContaining({ code: 'Unparsable' });
    expect(() => addressRange(cluster, RANGE_KEYS.primary, () => 0)?.emptyAllocator()).toThrow(coded);
    expect(() => nodePortRange(cluster, () => 0).emptyAllocator()).toThrow(coded);
  });

  test('a corrupt range stays unchanged', async () => {
    const table = memoryTable();
    const item = won(await table.put({ cluster: 'c', key: RANGE.key, value: { data: 'x' }, schema: 1 }, undefined));
    await expect(allocationsOf(table, RANGE, AT_ONCE).allocateOne(IP)).rejects.toMatchObject({ code: 'Corrupt' });
    expect(await table.get('c', RANGE.key)).toEqual(item);
  });
});

describe('the strikes of an address', () => {
  const struck = {
    ...EMPTY,
    data: fromBits([1, 2]),
    strikes: { once: fromBits([1, 2]), twice: fromBits([1]), last: { atMs: 1, passId: 'p' } },
  };

  test('a release clears only the strikes of its address', async () => {
    const table = memoryTable();
    await save(table, struck);
    expect(await allocationsOf(table, RANGE, AT_ONCE).releaseOne(IP)).toBeUndefined();
    expect(await saved(table)).toEqual({
      ...struck,
      data: fromBits([2]),
      strikes: { ...struck.strikes, once: fromBits([2]), twice: new Uint8Array(0) },
    });
  });
});

test('a release of a free address writes nothing', async () => {
  const table = memoryTable();
  await save(table);
  const before = await table.get('c', RANGE.key);
  expect(await allocationsOf(table, RANGE, AT_ONCE).releaseOne(IP)).toBeUndefined();
  expect(await table.get('c', RANGE.key)).toEqual(before);
});

test('a release of an address outside the range does nothing', async () => {
  expect(await allocationsOf(UNASKED, RANGE, AT_ONCE).releaseOne('10.0.0.1')).toBeUndefined();
});
