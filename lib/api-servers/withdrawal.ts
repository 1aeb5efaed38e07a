import { isWithdrawn, type Lease, withdrawnUntil } from '../cluster/lease.ts';
import { newLease, type Withdrawal, withdrawn } from '../endpoints/next-lease.ts';
import { TableError } from '../table/errors.ts';
import type { UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { updateLease } from '../table/leases.ts';

export interface WithdrawalRequest extends Withdrawal {
  readonly address: string;
  readonly nowMs: number;
  /** The caller may undo the withdrawal: it is refused if another caller has withdrawn the address. */
  readonly isOnlyOne?: boolean;
}

/**
 * Withdraws an address, with or without a lease: no answer of a probe publishes it before `untilMs`.
 * Idempotent: a withdrawn address keeps its observations and a later end.
 * @returns the lease after the write.
 * @throws TableError `Contended` when other writers won every time, the outcome is unclear, or it is not the only one.
 */
export function withdraw(
  table: KeyValueTable,
  cluster: string,
  { address, nowMs, isOnlyOne = false, ...withdrawal }: WithdrawalRequest,
  options?: UpdateOptions,
) {
  const change = (known: Lease = newLease(address)) => {
    if (isOnlyOne && isWithdrawn(known, nowMs)) throw withdrawnMeanwhile(address);
    const lease = withdrawn(known, withdrawal, nowMs);
    return { lease, result: lease };
  };
  return updateLease(table, cluster, address, change, options);
}

function withdrawnMeanwhile(address: string): TableError {
  const message = `Another caller deregisters ${address} at the same time, and may have to undo it: deregister it again to learn the result.`;
  return new TableError('Contended', message);
}

/**
 * Ends a withdrawal now: the next successful probe publishes the address again.
 * @returns the planned end of the withdrawal; `undefined`: the address is not withdrawn, and nothing is written.
 * @throws TableError `Contended` when other writers won every time or the outcome is unclear.
 */
export function endWithdrawal(
  table: KeyValueTable,
  cluster: string,
  { address, nowMs }: { readonly address: string; readonly nowMs: number },
  options?: UpdateOptions,
): Promise<number | undefined> {
  const change = (known: Lease | undefined) => {
    const result = known && withdrawnUntil(known, nowMs);
    if (known?.state !== 'withdrawn' || result === undefined) return { lease: known, result: undefined };
    return { lease: { ...known, withdrawnUntilMs: nowMs }, result };
  };
  return updateLease(table, cluster, address, change, options);
}
