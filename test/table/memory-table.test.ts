import { describeKeyValueTable, NOW_MS } from '../contract/key-value-table.ts';
import { countedWriteIds, memoryStore, memoryTable } from '../support/memory-table.ts';

const store = memoryStore();
const newWriteId = countedWriteIds();

describeKeyValueTable('memory table', {
  open: (deadline) => memoryTable({ nowMs: () => NOW_MS, newWriteId, store, ...(deadline && { deadline }) }),
});
