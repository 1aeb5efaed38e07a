import { beforeEach, describe, expect, test } from '@jest/globals';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { unwrittenTable } from '../../lib/table/table-views.ts';
import { describeKeyValueTable, NOW_MS, won } from '../contract/key-value-table.ts';
import { memoryStore, memoryTable } from '../support/memory-table.ts';

const newItem = (key: string, value: number) => ({ cluster: 'demo', key, value, schema: 1 });

describe('a table that withholds all writes', () => {
  let below: KeyValueTable;
  let view: KeyValueTable;
  const values = async (table: KeyValueTable, prefix = '') =>
    (await table.list('demo', prefix)).map(({ key, value }) => `${key}: ${value}`);

  beforeEach(async () => {
    below = memoryTable();
    for (const key of ['a', 'b/2']) won(await below.put(newItem(key, 1), undefined));
    view = unwrittenTable(below, { nowMs: () => 7 });
  });

  test('after withheld writes, the table returns the items as if the writes had been made, and does not change the stored items', async () => {
    const a = await view.get('demo', 'a');
    won(await view.put(newItem('a', 2), a));
    won(await view.put(newItem('b/1', 2), undefined));
    expect(await values(view)).toEqual(['a: 2', 'b/1: 2', 'b/2: 1']);
    expect(await values(view, 'b/1')).toEqual(['b/1: 2']);
    expect(await view.list('other', '')).toEqual([]);
    expect(await view.get('demo', 'a')).toMatchObject({ value: 2, version: 2, updatedAtMs: 7 });
    expect(await values(below)).toEqual(['a: 1', 'b/2: 1']);
  });

  test('a write returns "lost" if the item has changed since the read, as in a real table', async () => {
    const a = await view.get('demo', 'a');
    expect(await view.put(newItem('a', 2), undefined)).toMatchObject({ outcome: 'lost' });
    expect(await view.put(newItem('new', 2), a)).toMatchObject({ outcome: 'lost' });
    won(await view.put(newItem('a', 2), a));
    expect(await view.put(newItem('a', 3), a)).toMatchObject({ outcome: 'lost' });
  });
});

const store = memoryStore();

describeKeyValueTable('memory table', {
  open: (deadline) => memoryTable({ nowMs: () => NOW_MS, store, ...(deadline && { deadline }) }),
  remove: async (cluster, key) => store.get(cluster)?.delete(key),
});
