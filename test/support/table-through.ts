import { type KeyValueTable, type NewItem, TableError, type TableErrorCode } from '../../lib/table/key-value-table.ts';

type Call = <T>(step: () => Promise<T>, name: keyof KeyValueTable, cluster: string) => Promise<T>;

/** Returns a table that makes every call through `call`. */
export function tableThrough(table: KeyValueTable, call: Call): KeyValueTable {
  return {
    get: (cluster, key) => call(() => table.get(cluster, key), 'get', cluster),
    getAll: (keys) => call(() => table.getAll(keys), 'getAll', keys[0]?.cluster ?? ''),
    list: (cluster, prefix) => call(() => table.list(cluster, prefix), 'list', cluster),
    put: (item, previous) => call(() => table.put(item, previous), 'put', item.cluster),
  };
}

/** Returns a table whose put fails with this error code for each item that `fails` selects. */
export function failingPuts(
  table: KeyValueTable,
  code: TableErrorCode,
  fails: (item: NewItem) => boolean,
): KeyValueTable {
  const put: KeyValueTable['put'] = async (item, previous) => {
    if (fails(item)) throw new TableError(code, 'the test says so');
    return table.put(item, previous);
  };
  return { ...table, put };
}
