import type { KeyValueTable } from '../../lib/table/key-value-table.ts';

type Call = <T>(step: () => Promise<T>, name: keyof KeyValueTable, cluster: string) => Promise<T>;

/** Returns a table that makes every call through `call`. */
export function tableThrough(table: KeyValueTable, call: Call): KeyValueTable {
  return {
    get: (cluster, key) => call(() => table.get(cluster, key), 'get', cluster),
    list: (cluster, prefix) => call(() => table.list(cluster, prefix), 'list', cluster),
    put: (item, previous) => call(() => table.put(item, previous), 'put', item.cluster),
  };
}
