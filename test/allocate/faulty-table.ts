import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable, WriteResult } from '../../lib/table/key-value-table.ts';

/** How the one call ends that goes wrong. What has a reply of its own is for writes alone. */
export const ENDS = {
  'before it happened': 'before',
  'after it happened': 'after',
  'before it happens, which it does when the request is answered': 'late',
  'with a reply that says nothing, after it happened': 'unclearAfter',
  'with a reply that says nothing, before it happened': 'unclearBefore',
} as const;
export type End = (typeof ENDS)[keyof typeof ENDS];

export interface Faulty {
  readonly table: KeyValueTable;
  readonly happened: () => boolean;
  /** What was under way arrives. */
  readonly arrive: () => Promise<unknown>;
}

/** The table, whose call with the number `at` ends like that; from then on the process makes none. */
export function faulty(table: KeyValueTable, at: number, end: End): Faulty {
  let calls = 0;
  let late: () => Promise<unknown> = () => Promise.resolve();
  const fault = () => new TableError('Unavailable', 'the reply was lost');

  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    const isHere = calls++ === at;
    if (isHere && end === 'late') late = work;
    if (isHere && end !== 'after') throw fault();
    const result = await work();
    if (isHere) throw fault();
    return result;
  };
  const write = async <T>(work: () => Promise<WriteResult<T>>): Promise<WriteResult<T>> => {
    if (calls !== at || !end.startsWith('unclear')) return call(work);
    calls++;
    if (end === 'unclearAfter') await work();
    return { outcome: 'unclear' };
  };
  return {
    table: {
      get: (cluster, key) => call(() => table.get(cluster, key)),
      list: (cluster, prefix) => call(() => table.list(cluster, prefix)),
      put: (content, previous) => write(() => table.put(content, previous)),
      delete: (previous) => write(() => table.delete(previous)),
    },
    happened: () => calls > at,
    arrive: () => late(),
  };
}
