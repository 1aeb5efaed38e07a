import type fc from 'fast-check';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';

/** The table whose every call happens when the scheduler says so. */
export function stepping(table: KeyValueTable, scheduler: fc.Scheduler): KeyValueTable {
  const step = <T>(call: () => Promise<T>) => scheduler.schedule(Promise.resolve()).then(call);
  return {
    get: (cluster, key) => step(() => table.get(cluster, key)),
    list: (cluster, prefix) => step(() => table.list(cluster, prefix)),
    put: (content, previous) => step(() => table.put(content, previous)),
    delete: (previous) => step(() => table.delete(previous)),
  };
}
