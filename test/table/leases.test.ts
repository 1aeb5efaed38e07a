import { describe, expect, test } from '@jest/globals';
import { isHeld, isWithdrawn, type Lease } from '../../lib/cluster/lease.ts';
import type { KeyValueTable, TableValue } from '../../lib/table/key-value-table.ts';
import { type ListedLease, listLeases, putLease, removeLease, withdraw } from '../../lib/table/leases.ts';
import { won } from '../contract/key-value-table.ts';
import { AT_ONCE, describeInEachTable } from '../support/each-table.ts';
import { countedWriteIds, memoryTable } from '../support/memory-table.ts';
import { refreshLease } from '../support/refresh-lease.ts';

const NOW_MS = 1_000_000;
const DAY_MS = 24 * 60 * 60 * 1000;

function newTable(): KeyValueTable {
  return memoryTable({ nowMs: () => NOW_MS, newWriteId: countedWriteIds() });
}

function refreshed(address: string, expiresAtMs = NOW_MS + 15_000) {
  return { address, source: 'probe', expiresAtMs, seenDown: false } as const;
}

async function onlyLease(table: KeyValueTable): Promise<ListedLease> {
  const [listed, ...others] = await listLeases(table, 'c');
  if (listed === undefined || others.length > 0) throw new Error('expected one lease');
  return listed;
}

describeInEachTable('Leases', (open) => {
  test('are listed in byte order of their addresses, of both families, held or not', async () => {
    const table = await open();
    for (const address of ['10.0.0.2', '2001:db8::1', '10.0.0.10']) {
      won(await refreshLease(table, 'c', refreshed(address), undefined));
    }
    won(await refreshLease(table, 'c', refreshed('10.0.0.3', NOW_MS - DAY_MS), undefined));
    const listed = await listLeases(table, 'c');
    expect(listed.map(({ lease }) => lease.address)).toEqual(['10.0.0.10', '10.0.0.2', '10.0.0.3', '2001:db8::1']);
    expect(listed.map(({ lease }) => isHeld(lease, NOW_MS))).toEqual([true, true, false, true]);
  });

  test('come back with everything that was said of them', async () => {
    const table = await open();
    const lease: Lease = {
      address: '10.0.0.1',
      generation: 7,
      source: 'agent',
      host: 'lb.example.com',
      expiresAtMs: NOW_MS,
      misses: 2,
      missedAtMs: NOW_MS - 1,
      withdrawnUntilMs: NOW_MS + 1,
      seenDown: true,
      lastProbe: 'answered 503: etcd',
    };
    const written = won(await putLease(table, 'c', lease, undefined));
    expect(written.lease).toEqual(lease);
    expect(await listLeases(table, 'c')).toEqual([written]);
  });

  test('are removed one by one', async () => {
    const table = await open();
    const one = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    won(await refreshLease(table, 'c', refreshed('10.0.0.2'), undefined));
    expect((await removeLease(table, one)).outcome).toBe('won');
    expect((await onlyLease(table)).lease.address).toBe('10.0.0.2');
    expect((await removeLease(table, one)).outcome).toBe('lost');
  });
});

describe('A refresh', () => {
  test('starts at generation 1 and forgets the misses', async () => {
    const table = newTable();
    const first = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    expect(first.lease).toEqual({ ...refreshed('10.0.0.1'), generation: 1, misses: 0 });
    const missed = won(await putLease(table, 'c', { ...first.lease, misses: 1 }, first));
    expect(missed.lease).toMatchObject({ generation: 1, misses: 1 });
    const second = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), missed));
    expect(second.lease).toMatchObject({ generation: 2, misses: 0 });
  });

  test('is always a write, even of the same content', async () => {
    const table = newTable();
    const first = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    const second = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), first));
    expect(second.item.version).toBe(2);
    const third = won(await putLease(table, 'c', second.lease, second));
    expect(third.item.version).toBe(3);
  });

  test('is lost when another writer wrote the lease since it was listed', async () => {
    const table = newTable();
    const listed = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    await withdraw(table, 'c', { address: '10.0.0.1', untilMs: NOW_MS + DAY_MS, nowMs: NOW_MS }, AT_ONCE);
    expect(await refreshLease(table, 'c', refreshed('10.0.0.1'), listed)).toEqual({ outcome: 'lost' });
    expect(isWithdrawn((await onlyLease(table)).lease, NOW_MS)).toBe(true);
  });

  test('is lost when the lease was thought absent and is there', async () => {
    const table = newTable();
    won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    expect(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined)).toEqual({ outcome: 'lost' });
  });
});

describe('The item of a lease', () => {
  test('outlives the lease by a day, so that its misses are remembered', async () => {
    const table = newTable();
    const { item } = won(await refreshLease(table, 'c', refreshed('10.0.0.1', NOW_MS + 1), undefined));
    expect(item).toMatchObject({ key: 'masterleases/10.0.0.1', expiresAtMs: NOW_MS + 1 + DAY_MS });
  });

  test('is one that the table creates once, since leases are deleted', async () => {
    const table = newTable();
    const contents: object[] = [];
    const put: KeyValueTable['put'] = (content, previous) => {
      contents.push(content);
      return table.put(content, previous);
    };
    won(await refreshLease({ ...table, put }, 'c', refreshed('10.0.0.1'), undefined));
    expect(contents).toMatchObject([{ createOnce: true }]);
  });

  test('outlives the withdrawal as well', async () => {
    const table = newTable();
    won(await refreshLease(table, 'c', refreshed('10.0.0.1', NOW_MS + 1), undefined));
    await withdraw(table, 'c', { address: '10.0.0.1', untilMs: NOW_MS + DAY_MS, nowMs: NOW_MS }, AT_ONCE);
    expect((await onlyLease(table)).item.expiresAtMs).toBe(NOW_MS + 2 * DAY_MS);
  });

  test.each<[string, TableValue]>([
    ['text', 'x'],
    ['no generation', { source: 'probe', expiresAtMs: 1, misses: 0, seenDown: false }],
    ['a source that is none', { generation: 1, source: 'rumour', expiresAtMs: 1, misses: 0, seenDown: false }],
    ['no expiry', { generation: 1, source: 'probe', misses: 0, seenDown: false }],
    ['a flag that is text', { generation: 1, source: 'probe', expiresAtMs: 1, misses: 0, seenDown: 'no' }],
  ])('is corrupt when it holds %s', async (_, value) => {
    const table = newTable();
    won(await table.put({ cluster: 'c', key: 'masterleases/10.0.0.1', value, schema: 1 }, undefined));
    await expect(listLeases(table, 'c')).rejects.toMatchObject({
      code: 'Corrupt',
      message: expect.stringContaining('c/masterleases/10.0.0.1'),
    });
  });
});

describe('withdraw', () => {
  const withdrawal = { address: '10.0.0.1', untilMs: NOW_MS + 60_000, nowMs: NOW_MS };

  test('keeps what is known of the lease and returns until when it is withdrawn', async () => {
    const table = newTable();
    const { lease } = won(await refreshLease(table, 'c', refreshed('10.0.0.1'), undefined));
    const withdrawn = await withdraw(table, 'c', withdrawal, AT_ONCE);
    expect(withdrawn).toEqual({ ...lease, withdrawnUntilMs: NOW_MS + 60_000 });
    expect((await onlyLease(table)).lease).toEqual(withdrawn);
    expect(isHeld(withdrawn, NOW_MS)).toBe(false);
  });

  test('holds for an address that never had a lease', async () => {
    const table = newTable();
    const withdrawn = await withdraw(table, 'c', withdrawal, AT_ONCE);
    expect(withdrawn).toMatchObject({ address: '10.0.0.1', generation: 0, expiresAtMs: 0 });
    expect(isWithdrawn((await onlyLease(table)).lease, NOW_MS)).toBe(true);
  });

  test('is written once however often it is repeated', async () => {
    const table = newTable();
    for (let n = 0; n < 3; n++) await withdraw(table, 'c', withdrawal, AT_ONCE);
    expect((await onlyLease(table)).item.version).toBe(1);
  });

  test('repeated with a later end keeps that the server was seen down', async () => {
    const table = newTable();
    await withdraw(table, 'c', withdrawal, AT_ONCE);
    const listed = await onlyLease(table);
    won(await putLease(table, 'c', { ...listed.lease, seenDown: true }, listed));
    const again = await withdraw(table, 'c', { ...withdrawal, untilMs: NOW_MS + 90_000, nowMs: NOW_MS + 5 }, AT_ONCE);
    expect(again).toMatchObject({ withdrawnUntilMs: NOW_MS + 90_000, seenDown: true });
  });

  test('after an earlier withdrawal ended starts without having seen it down', async () => {
    const table = newTable();
    const lease = { ...refreshed('10.0.0.1'), generation: 1, misses: 0 };
    won(await putLease(table, 'c', { ...lease, withdrawnUntilMs: NOW_MS - 1, seenDown: true }, undefined));
    expect(await withdraw(table, 'c', withdrawal, AT_ONCE)).toMatchObject({ seenDown: false });
  });
});
