import { expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable, TableValue } from '../../lib/table/key-value-table.ts';
import { MOST_HOLD_BYTES, readRange, saveRange, sizeOfHolds } from '../../lib/table/ranges.ts';
import { won } from '../contract/key-value-table.ts';
import { found } from '../support/found.ts';
import { memoryTable } from '../support/memory-table.ts';

const KEY = RANGE_KEYS.primary;

const STORED: StoredRange = {
  range: '10.0.0.0/24',
  data: fromBits([0, 17, 253]),
  allocator: 'table',
  generation: 3,
  strikes: { once: fromBits([17]), twice: fromBits([253]), last: { atMs: 1_000, passId: 'p1' } },
  holds: [
    { owner: 'team-a', untilMs: 5_000, takenUpBy: 'any', requestId: 'r1', items: ['10.0.0.1', '10.0.0.254'] },
    { owner: 'team-b', takenUpBy: 'owner', items: ['10.0.0.18'] },
  ],
  unclaimed: [],
};
const UNSTRUCK: StoredRange = {
  ...STORED,
  strikes: { once: new Uint8Array(0), twice: new Uint8Array(0) },
  holds: [],
};

const readItem = async (table: KeyValueTable) => found(await readRange(table, 'c', KEY));

/** Returns the value with bytes as text, because Jest needs seconds to compare a hundred thousand bytes. */
function bytesAsText(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  if (Array.isArray(value)) return value.map(bytesAsText);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, bytesAsText(each)]));
}

test('the items that admission allocated for Services of several namespaces are read back unchanged', async () => {
  const unclaimed = [
    { namespace: 'a', name: 'web', reviews: 12, first: [0], later: [17, 253] },
    { namespace: 'a', name: 'api', reviews: 1, first: [1], later: [] },
    { namespace: 'b', name: 'web', reviews: 2, first: [], later: [2] },
  ];
  const table = memoryTable();
  won(await saveRange(table, 'c', KEY, { ...STORED, unclaimed }, undefined));
  expect((await readItem(table)).stored).toEqual({ ...STORED, unclaimed });
});

test('a /12 range that has a leak at every address, and holds of the maximum size, fits into a table item, because the strikes of the highest addresses are dropped', async () => {
  const holds = Array.from({ length: 700 }, (_, index) => ({
    ...{ owner: `team-${index}`, takenUpBy: 'any' as const, requestId: 'r'.repeat(30) },
    items: [`10.0.${index >> 8}.${index & 255}`],
  }));
  expect(sizeOfHolds(holds)).toBeGreaterThan(60_000);
  expect(sizeOfHolds(holds)).toBeLessThan(MOST_HOLD_BYTES);
  const all = new Uint8Array(2 ** 17).fill(0xff);
  const strikes = { once: all.map((byte) => byte & 0x55), twice: all.map((byte) => byte & 0xaa) };
  const table = memoryTable();
  won(await saveRange(table, 'c', KEY, { ...UNSTRUCK, range: '10.0.0.0/12', data: all, strikes, holds }, undefined));
  const { stored } = await readItem(table);
  expect(bytesAsText({ ...stored, strikes: undefined })).toMatchObject({ data: bytesAsText(all), holds });
  expect(bytesAsText(stored.strikes.twice)).toBe(bytesAsText(strikes.twice));
  const { length } = stored.strikes.once;
  expect(length).toBeGreaterThan(60_000);
  expect(bytesAsText(stored.strikes.once)).toBe(bytesAsText(strikes.once.subarray(2 ** 17 - length)));
});

test('saveRange writes nothing if the range is unchanged', async () => {
  const table = memoryTable();
  const first = won(await saveRange(table, 'c', KEY, STORED, undefined));
  expect(won(await saveRange(table, 'c', KEY, { ...STORED }, first))).toEqual(first);
  expect((await readItem(table)).item).toEqual(first);
});

const value = {
  range: '10.0.0.0/24',
  data: new Uint8Array(0),
  allocator: 'table',
  generation: 1,
  strikes: { once: new Uint8Array(0), twice: new Uint8Array(0) },
  holds: [],
};
const hold = { owner: 'team-a', takenUpBy: 'any', items: ['10.0.0.1'] };

test('readRange returns a range of the previous schema with an empty list of holds, and only the next write changes the schema', async () => {
  const table = memoryTable();
  const { holds, ...before } = value;
  const item = won(await table.put({ cluster: 'c', key: KEY, value: before, schema: 1 }, undefined));
  const { stored } = await readItem(table);
  expect(stored).toEqual({ ...before, holds, unclaimed: [] });
  const next = won(await saveRange(table, 'c', KEY, { ...stored, generation: 2 }, item));
  expect(next.schema).toBe(2);
  expect((await readItem(table)).stored).toEqual({ ...stored, generation: 2 });
});

test.each<[string, TableValue]>([
  ['holds.0.items', { ...value, holds: [{ ...hold, items: [] }] }],
  ['holds.0.takenUpBy', { ...value, holds: [{ ...hold, takenUpBy: 'none' }] }],
  ['allocator', { ...value, allocator: 'etcd' }],
  ['generation', { ...value, generation: -1 }],
  ['generation', { ...value, generation: 1.5 }],
])('readRange fails with Corrupt for a range with an invalid %s, and keeps it', async (path, bad) => {
  const table = memoryTable();
  const item = won(await table.put({ cluster: 'c', key: KEY, value: bad, schema: 2 }, undefined));
  await expect(readRange(table, 'c', KEY)).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringContaining(`Item c/ranges/serviceips does not parse: ${path} `),
  });
  expect(await table.get('c', KEY)).toEqual(item);
});

test('readRange ignores invalid records of items that admission allocated; the only effect is that a repeated admission review gets other items', async () => {
  const table = memoryTable();
  const bad = { ...value, given: { a: 'web 1 16 \nweb\n\nx 1 y ' } };
  won(await table.put({ cluster: 'c', key: KEY, value: bad, schema: 2 }, undefined));
  const unclaimed = [{ namespace: 'a', name: 'web', reviews: 1, first: [16], later: [] }];
  expect((await readItem(table)).stored).toEqual({ ...value, unclaimed });
});
