import { expect, test } from '@jest/globals';
import { isActive, type Lease } from '../../lib/leases/lease.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, LEASES, readLeases } from '../../lib/table/leases.ts';
import { storedSize } from '../../lib/table/stored-item.ts';
import { won } from '../contract/key-value-table.ts';
import { found } from '../support/found.ts';
import { memoryTable } from '../support/memory-table.ts';
import { type LeaseFields, aLease as leaseWith, putLease } from '../support/put-lease.ts';

const NOW_MS = 1_000_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const [A, B, C] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;

function newTable(): KeyValueTable {
  return memoryTable({ nowMs: () => NOW_MS });
}

function aLease(address: string, fields: Partial<LeaseFields> = {}): Lease {
  return leaseWith({ address, expiresAtMs: NOW_MS + 15_000, ...fields });
}

async function itemIn(table: KeyValueTable): Promise<Item> {
  return found((await readLeases(table, 'c')).item);
}

function changes(...leases: readonly Lease[]) {
  return new Map(leases.map((lease) => [lease.address, lease]));
}

/** Returns a table that runs `meanwhile` once, just before its first put. */
function before(table: KeyValueTable, meanwhile: () => Promise<unknown>): KeyValueTable {
  let isDone = false;
  const put: KeyValueTable['put'] = async (content, previous) => {
    if (!isDone) {
      isDone = true;
      await meanwhile();
    }
    return table.put(content, previous);
  };
  return { ...table, put };
}

test('a read returns all leases of both families, even expired leases, in the byte order of their addresses', async () => {
  const table = newTable();
  for (const address of [B, '2001:db8::1', '10.0.0.10']) await putLease(table, 'c', aLease(address));
  await putLease(table, 'c', aLease(C, { expiresAtMs: NOW_MS - DAY_MS }));
  const { leases } = await readLeases(table, 'c');
  expect(leases.map(({ address }) => address)).toEqual(['10.0.0.10', B, C, '2001:db8::1']);
  expect(leases.map((lease) => isActive(lease, NOW_MS))).toEqual([true, true, false, true]);
});

test.each([
  ['leased', {}, {}],
  ['shuttingDown', { seenDown: true }, { seenDown: true }],
  ['withdrawn', { withdrawnUntilMs: 7 }, { withdrawnUntilMs: 7 }],
])('a lease in the state %s is stored without defaults, and read back unchanged', async (_, fields, stored) => {
  const table = newTable();
  await putLease(table, 'c', aLease(A, fields));
  const { leases, item } = await readLeases(table, 'c');
  expect(leases).toEqual([aLease(A, fields)]);
  expect(item?.value).toEqual({ [A]: { generation: 1, expiresAtMs: NOW_MS + 15_000, ...stored } });
});

test('changeLeases writes, changes and removes leases of several addresses with one put', async () => {
  const table = newTable();
  const { present } = await changeLeases(table, 'c', await readLeases(table, 'c'), changes(aLease(A), aLease(B)));
  const both = new Map([
    [A, undefined],
    [B, aLease(B, { generation: 2 })],
  ]);
  const { written } = await changeLeases(table, 'c', present, both);
  expect([...written]).toEqual([A, B]);
  const leases = [aLease(B, { generation: 2 })];
  expect(await readLeases(table, 'c')).toMatchObject({ leases, item: { version: 2 } });
});

test('changeLeases writes a lease even if its content is unchanged', async () => {
  const table = newTable();
  for (let n = 0; n < 3; n++) await putLease(table, 'c', aLease(A));
  expect((await itemIn(table)).version).toBe(3);
});

test('changeLeases writes nothing if no address is given', async () => {
  const table = newTable();
  const read = await readLeases(table, 'c');
  const nothing = { written: new Set(), present: read, unwritten: new Map() };
  expect(await changeLeases(table, 'c', read, new Map())).toEqual(nothing);
});

const withdrawn = aLease(A, { withdrawnUntilMs: NOW_MS + DAY_MS });
test.each<[string, Lease | undefined, Lease | undefined]>([
  ['withdrawn', aLease(A), withdrawn],
  ['created', undefined, withdrawn],
  ['removed', aLease(A), undefined],
])('changeLeases does not change a lease that was %s since the read, but changes others', async (_, atRead, atPut) => {
  const table = newTable();
  const change = async (...to: [string, Lease | undefined][]) =>
    changeLeases(table, 'c', await readLeases(table, 'c'), new Map(to));
  const { present: read } = await change([A, atRead], [B, aLease(B)]);
  const racing = before(table, () => change([A, atPut]));
  const own = changes(aLease(A, { generation: 2 }), aLease(B, { generation: 2 }));
  const { written, present } = await changeLeases(racing, 'c', read, own);
  expect([...written]).toEqual([B]);
  expect(present.leases).toEqual([...(atPut === undefined ? [] : [atPut]), aLease(B, { generation: 2 })]);
  expect(await readLeases(table, 'c')).toEqual(present);
});

test('changeLeases waits before the third and each later attempt, gives up after the eighth, and returns the stored leases', async () => {
  const table = newTable();
  const waits: number[] = [];
  const wait = async (attempt: number) => void waits.push(attempt);
  let generation = 0;
  const put: KeyValueTable['put'] = async (content, previous) => {
    generation += 1;
    await putLease(table, 'c', aLease(B, { generation }));
    return table.put(content, previous);
  };
  const read = await readLeases(table, 'c');
  const result = await changeLeases({ ...table, put }, 'c', read, changes(aLease(A)), { wait });
  expect(result).toMatchObject({ written: new Set(), present: { leases: [{ address: B, generation: 8 }] } });
  expect(waits).toEqual([0, 1, 2, 3, 4, 5]);
});

test('the item of the leases is kept until a day after its last lease or withdrawal ends', async () => {
  const table = newTable();
  await putLease(table, 'c', aLease(A, { expiresAtMs: NOW_MS + 2 }));
  await putLease(table, 'c', aLease(B, { expiresAtMs: NOW_MS + 1 }));
  expect(await itemIn(table)).toMatchObject({ key: LEASES, expiresAtMs: NOW_MS + 2 + DAY_MS });
  await putLease(table, 'c', aLease(B, { withdrawnUntilMs: NOW_MS + DAY_MS }));
  expect((await itemIn(table)).expiresAtMs).toBe(NOW_MS + 2 * DAY_MS);
});

test('after the removal of the last lease, the item of the leases still has an expiry', async () => {
  const table = newTable();
  await putLease(table, 'c', aLease(A));
  await changeLeases(table, 'c', await readLeases(table, 'c'), new Map([[A, undefined]]));
  expect(await itemIn(table)).toMatchObject({ value: {}, expiresAtMs: DAY_MS });
});

test.each([
  ['five IPv4 servers', (n: number) => `192.168.100.${100 + n}`, 5],
  ['four IPv6 servers', (n: number) => `2001:db8:1111:2222:3333:4444:5555:666${n}`, 4],
])('the item with the leases of %s is small enough for one write unit', async (_, addressOf, servers) => {
  const table = newTable();
  const expiresAtMs = 1_800_000_000_123;
  for (let n = 0; n < servers; n++) {
    const fields = { generation: 3_153_600, expiresAtMs, lastProbe: 'answered 200' };
    await putLease(table, 'c', aLease(addressOf(n), fields));
  }
  const { value, schema } = await itemIn(table);
  const times = { updatedAt: '2027-01-15T08:00:00.123Z', expiresAtMs, ttl: 1_800_090_000 };
  const writes = { writeId: '00000000-0000-4000-8000-000000000000', earlierWrites: new Uint8Array(64 * 6) };
  const names = { cluster: 'prod-us-east-1-00000', key: LEASES, version: 3_153_600 };
  expect(storedSize({ ...names, ...writes, ...times, schema, value })).toBeLessThan(1024);
});

test('the error of a corrupt item of leases states that removing the item ends all deregistrations', async () => {
  const table = newTable();
  const value = { [A]: { generation: 1, source: 'rumour', expiresAtMs: 1 } };
  won(await table.put({ cluster: 'c', key: LEASES, value, schema: 1 }, undefined));
  await expect(readLeases(table, 'c')).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringMatching(
      `c/${LEASES} does not parse: ${A}.source is.*correct it, or remove it, which ends all deregistrations`,
    ),
  });
});
