import { describe, expect, test } from '@jest/globals';
import { describeKeyValueTable, NOW_MS } from '../contract/key-value-table.ts';
import { countedWriteIds, memoryStore, memoryTable } from '../support/memory-table.ts';

const store = memoryStore();
const newWriteId = countedWriteIds();

describeKeyValueTable('memory table', {
  open: (deadline) => memoryTable({ nowMs: () => NOW_MS, newWriteId, store, ...(deadline && { deadline }) }),
});

describe('a memory table without sharing', () => {
  test('a memory table shares nothing with another one', async () => {
    const tables = [1, 2].map(() => memoryTable({ nowMs: () => NOW_MS, newWriteId }));
    await tables[0]?.put({ cluster: 'c', key: 'k', value: 1, schema: 1 }, undefined);
    expect(await tables[1]?.list('c', '')).toEqual([]);
  });
});
