import type { Lease } from '../../lib/cluster/lease.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../lib/table/leases.ts';

/** Writes a lease over the one that is there. Returns whether it was written: another writer may have been faster. */
export async function putLease(table: KeyValueTable, cluster: string, lease: Lease): Promise<boolean> {
  const { address } = lease;
  const { written } = await changeLeases(table, cluster, await readLeases(table, cluster), new Map([[address, lease]]));
  return written.has(address);
}

/**
 * Refreshes a lease (`UpdateLease` of `pkg/controlplane/reconcilers/lease.go`): its generation grows by one, its misses
 * are forgotten. What it says of a withdrawal is the caller's decision.
 */
export async function refreshLease(
  table: KeyValueTable,
  cluster: string,
  lease: Omit<Lease, 'generation' | 'misses' | 'missedAtMs'>,
): Promise<boolean> {
  const known = leaseOf(await readLeases(table, cluster), lease.address);
  return putLease(table, cluster, { ...lease, generation: (known?.generation ?? 0) + 1, misses: 0 });
}
