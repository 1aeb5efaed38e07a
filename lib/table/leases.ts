import { isWithdrawn, type Lease } from '../cluster/lease.ts';
import { guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import { fieldsOf } from './item-values.ts';
import type { Item, KeyValueTable, NewItem, WriteResult } from './key-value-table.ts';

export const LEASES = 'masterleases/';
const SCHEMA = 1;

/**
 * How long an address is remembered after its lease and its withdrawal are over. With its item, its missed probes would
 * be forgotten, and an outage of ours could then cost a healthy server its place.
 */
const REMEMBERED_MS = 24 * 60 * 60 * 1000;

/** A lease and the item that holds it: what a write is conditional on. */
export interface ListedLease {
  readonly lease: Lease;
  readonly item: Item;
}

/**
 * All leases of a cluster, valid or not, in byte order of their addresses (10.0.0.10 before 10.0.0.2).
 * @throws TableError `SchemaTooNew`, `Corrupt`.
 */
export async function listLeases(table: KeyValueTable, cluster: string): Promise<ListedLease[]> {
  const items = await table.list(cluster, LEASES);
  return items.map((item) => ({ lease: decodeLease(item), item }));
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readLease(
  table: KeyValueTable,
  cluster: string,
  address: string,
): Promise<ListedLease | undefined> {
  const item = await table.get(cluster, leaseKey(address));
  return item && { lease: decodeLease(item), item };
}

/** Writes a lease over exactly what was listed for its address, `undefined` if there was none. Never skipped. */
export async function putLease(
  table: KeyValueTable,
  cluster: string,
  lease: Lease,
  listed: ListedLease | undefined,
): Promise<WriteResult<ListedLease>> {
  const content = { ...leaseContent(lease), cluster, key: leaseKey(lease.address) };
  const result = await table.put(content, listed?.item);
  return result.outcome === 'won' ? { ...result, item: { lease, item: result.item } } : result;
}

export function removeLease(table: KeyValueTable, listed: ListedLease): Promise<WriteResult<undefined>> {
  return table.delete(listed.item);
}

export interface Withdrawal {
  readonly address: string;
  readonly untilMs: number;
  readonly nowMs: number;
  /** The server itself shuts down and releases its lease: the next 200 is the server again, and ends the withdrawal. */
  readonly goingDown?: boolean;
}

/**
 * Withdraws an address, with a lease or without: it is not published before `untilMs`, whatever probes answer.
 * Idempotent: an address that is withdrawn already keeps what was observed since.
 * @returns the lease as it now is.
 * @throws TableError `Contended` when its refreshes won every time or the outcome is unclear.
 */
export function withdraw(
  table: KeyValueTable,
  cluster: string,
  { address, untilMs, nowMs, goingDown = false }: Withdrawal,
  options?: UpdateOptions,
): Promise<Lease> {
  return guaranteedUpdate(
    table,
    cluster,
    leaseKey(address),
    (current) => {
      const known = current === undefined ? newLease(address) : decodeLease(current);
      const seenDown = goingDown || (isWithdrawn(known, nowMs) && known.seenDown);
      const expiresAtMs = goingDown ? Math.min(known.expiresAtMs, nowMs) : known.expiresAtMs;
      const lease = { ...known, expiresAtMs, withdrawnUntilMs: untilMs, seenDown };
      return { write: leaseContent(lease), result: lease };
    },
    options,
  );
}

/**
 * Ends a withdrawal now: the next successful probe publishes the address again.
 * @returns until when it would have lasted; `undefined`: it is not withdrawn, and nothing is written.
 * @throws TableError `Contended` when other writers won every time or the outcome is unclear.
 */
export function endWithdrawal(
  table: KeyValueTable,
  cluster: string,
  { address, nowMs }: { readonly address: string; readonly nowMs: number },
  options?: UpdateOptions,
): Promise<number | undefined> {
  return guaranteedUpdate<number | undefined>(
    table,
    cluster,
    leaseKey(address),
    (current) => {
      const known = current && decodeLease(current);
      if (known === undefined || !isWithdrawn(known, nowMs)) return { keep: undefined };
      return { write: leaseContent({ ...known, withdrawnUntilMs: nowMs }), result: known.withdrawnUntilMs };
    },
    options,
  );
}

function newLease(address: string): Lease {
  return { address, generation: 0, source: 'probe', expiresAtMs: 0, misses: 0, seenDown: false };
}

/** The item's own expiry is only for the TTL; whether the lease is valid is in its value. */
function leaseContent(lease: Lease): Omit<NewItem, 'cluster' | 'key'> {
  const { address: _, ...value } = lease;
  return {
    schema: SCHEMA,
    createOnce: true,
    value,
    expiresAtMs: Math.max(lease.expiresAtMs, lease.withdrawnUntilMs ?? 0) + REMEMBERED_MS,
  };
}

export function leaseKey(address: string): string {
  return LEASES + address;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeLease(item: Item): Lease {
  const fields = fieldsOf(item, SCHEMA);
  const host = fields.optionalText('host');
  const missedAtMs = fields.optionalNumber('missedAtMs');
  const withdrawnUntilMs = fields.optionalNumber('withdrawnUntilMs');
  const lastProbe = fields.optionalText('lastProbe');
  return {
    address: item.key.slice(LEASES.length),
    generation: fields.count('generation'),
    source: fields.oneOf('source', ['probe', 'agent']),
    expiresAtMs: fields.number('expiresAtMs'),
    misses: fields.count('misses'),
    seenDown: fields.flag('seenDown'),
    ...(host !== undefined && { host }),
    ...(missedAtMs !== undefined && { missedAtMs }),
    ...(withdrawnUntilMs !== undefined && { withdrawnUntilMs }),
    ...(lastProbe !== undefined && { lastProbe }),
  };
}
