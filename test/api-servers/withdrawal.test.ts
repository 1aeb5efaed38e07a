import { describe, expect, test } from '@jest/globals';
import { withdraw } from '../../lib/api-servers/withdrawal.ts';
import { LEASES, readLeases } from '../../lib/table/leases.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { countedWriteIds, memoryTable } from '../support/memory-table.ts';
import { aLease, putLease } from '../support/put-lease.ts';

const NOW_MS = 1_000_000;
const [A, B] = ['10.0.0.1', '10.0.0.2'] as const;
const WITHDRAWAL = { address: A, untilMs: NOW_MS + 60_000, nowMs: NOW_MS };

function newTable() {
  return memoryTable({ nowMs: () => NOW_MS, newWriteId: countedWriteIds() });
}

const leasesIn = async (table: ReturnType<typeof newTable>) => (await readLeases(table, 'c')).leases;

describe('withdraw', () => {
  test('stores the withdrawal of an address without a lease, and leaves the other leases', async () => {
    const table = newTable();
    await putLease(table, 'c', { address: B });
    const lease = await withdraw(table, 'c', WITHDRAWAL, AT_ONCE);
    expect(lease).toEqual(aLease({ address: A, generation: 0, withdrawnUntilMs: NOW_MS + 60_000 }));
    expect(await leasesIn(table)).toEqual([lease, aLease({ address: B })]);
  });

  test('keeps the refresh of another address at the same time', async () => {
    const table = newTable();
    await putLease(table, 'c', { address: B });
    let isFirst = true;
    const put: typeof table.put = async (content, previous) => {
      if (isFirst) {
        isFirst = false;
        await putLease(table, 'c', { address: B, generation: 2 });
      }
      return table.put(content, previous);
    };
    await withdraw({ ...table, put }, 'c', WITHDRAWAL, AT_ONCE);
    expect(await leasesIn(table)).toMatchObject([{ withdrawnUntilMs: NOW_MS + 60_000 }, { generation: 2 }]);
  });

  test('writes a repeated withdrawal only once', async () => {
    const table = newTable();
    for (let n = 0; n < 3; n++) await withdraw(table, 'c', WITHDRAWAL, AT_ONCE);
    expect((await table.get('c', LEASES))?.version).toBe(1);
  });

  test('keeps the later end if a caller writes an earlier end after it', async () => {
    const table = newTable();
    await withdraw(table, 'c', { ...WITHDRAWAL, untilMs: NOW_MS + 90_000 }, AT_ONCE);
    expect(await withdraw(table, 'c', WITHDRAWAL, AT_ONCE)).toMatchObject({ withdrawnUntilMs: NOW_MS + 90_000 });
  });

  test('refuses a withdrawal that its caller may undo if another caller has withdrawn the address', async () => {
    const table = newTable();
    await withdraw(table, 'c', WITHDRAWAL, AT_ONCE);
    const second = withdraw(table, 'c', { ...WITHDRAWAL, untilMs: NOW_MS + 90_000, isOnlyOne: true }, AT_ONCE);
    await expect(second).rejects.toMatchObject({ code: 'Contended' });
    expect(await leasesIn(table)).toMatchObject([{ withdrawnUntilMs: NOW_MS + 60_000 }]);
  });
});
