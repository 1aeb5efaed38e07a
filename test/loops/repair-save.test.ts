import { describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { saveOrMerge } from '../../lib/loops/repair-ranges.ts';
import type { Comparison } from '../../lib/repair/compare-range.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { tableWith } from '../repair/faults.ts';
import { RepairCluster, storedRange } from '../repair/repair-cluster.ts';

const KEY = RANGE_KEYS.nodePorts;
const RANGE = '30000-32767';

function deciding(...proved: number[]): Comparison {
  const data = fromBits(proved);
  const none = new Uint8Array(0);
  const counts = { allocated: proved.length, free: 0, capacity: 0, leaks: 0, mayHaveLeaked: 0, held: 0, holdsEnded: 0 };
  const next = storedRange({ range: RANGE, data });
  return { findings: [], next, changed: true, proved: data, freed: none, ended: [], bitOf: () => undefined, counts };
}

describe('a save that loses', () => {
  test('gives up when others are always first', async () => {
    const cluster = new RepairCluster();
    await cluster.store(KEY, { range: RANGE, data: fromBits([1]) });
    const read = await readRange(cluster.table, 'test', KEY);
    let puts = 0;
    const table = tableWith(cluster.table, {
      put: async () => {
        puts++;
        return { outcome: 'lost' };
      },
    });
    const saving = saveOrMerge(table, 'test', { key: KEY, read }, deciding(2), {
      attempts: 3,
      wait: async () => undefined,
    });
    await expect(saving).rejects.toMatchObject({ code: 'Contended' });
    expect(puts).toBe(4);
  });

  test('goes onto the newest that it finds, however often it is overtaken', async () => {
    const cluster = new RepairCluster();
    await cluster.store(KEY, { range: RANGE, data: fromBits([1]) });
    const read = await readRange(cluster.table, 'test', KEY);
    let overtaken = 0;
    const table = tableWith(cluster.table, {
      put: async (item, previous) => {
        if (overtaken++ < 3) {
          await cluster.store(KEY, { range: RANGE, data: fromBits([1, 10 + overtaken]) });
          return { outcome: 'lost' };
        }
        return cluster.table.put(item, previous);
      },
    });
    const wait = async () => undefined;
    expect(await saveOrMerge(table, 'test', { key: KEY, read }, deciding(2), { wait })).toBe('merged');
    expect((await cluster.stored(KEY))?.data).toEqual(fromBits([1, 2, 13]));
  });

  test('leaves a merge whose reply was lost unresolved', async () => {
    const cluster = new RepairCluster();
    await cluster.store(KEY, { range: RANGE, data: fromBits([1]) });
    const outcomes = ['lost', 'unclear'] as const;
    let puts = 0;
    const table = tableWith(cluster.table, { put: async () => ({ outcome: outcomes[puts++] ?? 'unclear' }) });
    const saving = saveOrMerge(table, 'test', { key: KEY, read: undefined }, deciding(2));
    await expect(saving).rejects.toMatchObject({ code: 'Contended' });
    expect(puts).toBe(2);
  });
});
