import { canonicalAddress } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { endWithdrawal, readLease } from '../table/leases.ts';

export interface UndoRequest {
  readonly spec: ClusterSpec;
  readonly table: KeyValueTable;
  /** One address, as text. */
  readonly address: string;
  readonly nowMs: () => number;
}

export type UndoResult =
  /** `wasUntilMs`: until when it would have stayed out. */
  | { readonly outcome: 'undone'; readonly address: string; readonly wasUntilMs: number }
  /** Its time is over, or nobody withdrew it. */
  | { readonly outcome: 'notWithdrawn'; readonly address: string }
  | { readonly outcome: 'notAnAddress' }
  | { readonly outcome: 'notRegistered' };

/**
 * Takes back that an address was deregistered. Only the table is written: the next tick of the kubernetes-service loop,
 * or the next heartbeat of the server's own host, publishes the address again when the server answers.
 * @throws TableError
 */
export async function undoDeregister({ spec, table, address: text, nowMs }: UndoRequest): Promise<UndoResult> {
  const address = canonicalAddress(text);
  if (address === undefined) return { outcome: 'notAnAddress' };
  const wasUntilMs = await endWithdrawal(table, spec.name, { address, nowMs: nowMs() });
  if (wasUntilMs !== undefined) return { outcome: 'undone', address, wasUntilMs };
  const isNamed = spec.apiServers.some((server) => 'address' in server && server.address === address);
  const isKnown = isNamed || (await readLease(table, spec.name, address)) !== undefined;
  return isKnown ? { outcome: 'notWithdrawn', address } : { outcome: 'notRegistered' };
}
