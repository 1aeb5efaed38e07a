import type { AllocatorOfRecord, Mode } from '../cluster/cluster-spec.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type UnwrittenOptions, unwrittenTable } from '../table/unwritten-table.ts';

/**
 * What a pass may write. `all`: everything. `bookkeeping`: in the table, all but ranges that the table allocates; nothing in
 * the cluster. `none`: nothing, as a stack that does not own the cluster, or a dry run.
 */
export type Writes = 'all' | 'bookkeeping' | 'none';

interface Ports {
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
}

export function writesOf(mode: Mode): Writes {
  return mode === 'observe' ? 'bookkeeping' : 'all';
}

/** Returns ports that withhold and report every write that the pass may not make: loops do not check. */
export function portsFor(
  writes: Writes,
  { table, kubernetes }: Ports,
  allocator: AllocatorOfRecord,
  { wouldWrite, ...options }: Omit<UnwrittenOptions, 'isWithheld'> & Required<Pick<UnwrittenOptions, 'wouldWrite'>>,
): Ports {
  if (writes === 'all') return { table, kubernetes };
  const isWithheld = (key: string) => writes === 'none' || (allocator === 'table' && key.startsWith('ranges/'));
  return {
    // A usage bitmap of what API servers allocate is not worth a report.
    table: unwrittenTable(table, { ...options, isWithheld, ...(allocator === 'table' && { wouldWrite }) }),
    kubernetes: withholdWrites(kubernetes, wouldWrite),
  };
}
