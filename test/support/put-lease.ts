import type { Lease } from '../../lib/leases/lease.ts';
import { newLease, type Withdrawal, withdrawn } from '../../lib/leases/lease-states.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases, updateLease } from '../../lib/table/leases.ts';

/** The fields of a lease in the table. `withdrawnUntilMs` and `seenDown` determine its state. */
export type LeaseFields = Partial<Omit<Lease, 'state'>> & {
  readonly address: string;
  readonly state?: Lease['state'];
  readonly withdrawnUntilMs?: number;
  readonly seenDown?: boolean;
};

export function aLease({
  state,
  withdrawnUntilMs,
  seenDown = state === 'shuttingDown',
  ...record
}: LeaseFields): Lease {
  const lease = { generation: 1, source: 'probe', expiresAtMs: 0, misses: 0, ...record } as const;
  if (withdrawnUntilMs === undefined) return { ...lease, state: seenDown ? 'shuttingDown' : 'leased' };
  return { ...lease, state: 'withdrawn', withdrawnUntilMs, seenDown };
}

export async function putLease(table: KeyValueTable, cluster: string, fields: LeaseFields): Promise<boolean> {
  const lease = aLease(fields);
  const { address } = lease;
  const { written } = await changeLeases(table, cluster, await readLeases(table, cluster), new Map([[address, lease]]));
  return written.has(address);
}

/** Withdraws an address in the table, as `deregister` does before it removes the address. */
export function withdraw(
  table: KeyValueTable,
  cluster: string,
  { address, nowMs, ...withdrawal }: Withdrawal & { readonly address: string; readonly nowMs: number },
): Promise<Lease> {
  return updateLease(table, cluster, (leases) => {
    const lease = withdrawn(leaseOf({ leases }, address) ?? newLease(address), withdrawal, nowMs);
    return { lease, result: lease };
  });
}
