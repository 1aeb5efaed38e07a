import type { Lease } from '../../lib/cluster/lease.ts';
import type { KeyValueTable, WriteResult } from '../../lib/table/key-value-table.ts';
import { type ListedLease, putLease } from '../../lib/table/leases.ts';

/**
 * Refreshes a lease (`UpdateLease` of `pkg/controlplane/reconcilers/lease.go`): its generation grows by one, its misses
 * are forgotten. What it says of a withdrawal is the caller's decision.
 */
export function refreshLease(
  table: KeyValueTable,
  cluster: string,
  lease: Omit<Lease, 'generation' | 'misses' | 'missedAtMs'>,
  listed: ListedLease | undefined,
): Promise<WriteResult<ListedLease>> {
  const generation = (listed?.lease.generation ?? 0) + 1;
  return putLease(table, cluster, { ...lease, generation, misses: 0 }, listed);
}
