import type fc from 'fast-check';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { tableThrough } from '../support/table-through.ts';

/** The table whose every call happens when the scheduler says so. */
export function stepping(table: KeyValueTable, scheduler: fc.Scheduler): KeyValueTable {
  return tableThrough(table, (call) => scheduler.schedule(Promise.resolve()).then(call));
}
