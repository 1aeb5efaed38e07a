import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { afterChanges, endOf, type Lease, type LeaseChanges } from '../cluster/lease.ts';
import { guaranteedUpdate, type UpdateOptions, writeUntilWon } from './guaranteed-update.ts';
import type { Item, KeyValueTable, NewItem, TableValue } from './key-value-table.ts';
import { count, decodeItem, fieldsIn } from './stored-item.ts';

/** The key of the item with all leases of a cluster, by address: a pass writes them with one put (docs/adr/0018). */
export const LEASES = 'masterleases';
const SCHEMA = 1;
const REMEDY = 'correct it, or remove it, which ends all deregistrations of the cluster';

/**
 * How long the item is kept after the last of its leases and withdrawals ended. Without it missed probes would be
 * forgotten after an outage of the functions, which could remove a healthy server.
 */
const REMEMBERED_MS = 24 * 60 * 60 * 1000;

/** All leases of a cluster, and their item, which is the condition of a write. */
export interface StoredLeases {
  /** Active and expired leases, in byte order of their addresses (10.0.0.10 before 10.0.0.2). */
  readonly leases: readonly Lease[];
  readonly item: Item | undefined;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readLeases(table: KeyValueTable, cluster: string): Promise<StoredLeases> {
  const item = await table.get(cluster, LEASES);
  return { leases: decodeLeases(item), item };
}

export interface LeasesChanged {
  /** Addresses whose lease was changed. Empty if the outcome of the put is unclear, or the table withholds writes. */
  readonly written: ReadonlySet<string>;
  /** The leases after the put, also after a withheld one. If the put was not made, they were read again. */
  readonly present: StoredLeases;
  /** The changes that were not written although other writers have changed nothing of the lease but its misses. */
  readonly unwritten: LeaseChanges;
}

/**
 * Changes leases with one put. The lease of an address changes only if it still equals that in `read`: another writer
 * of the same address wins. Changes of other addresses are kept: the put is repeated over them, a bounded number of
 * times, unless its outcome is unclear.
 * @throws TableError `SchemaTooNew`, `Corrupt`.
 */
export async function changeLeases(
  table: KeyValueTable,
  cluster: string,
  read: StoredLeases,
  changes: LeaseChanges,
  options?: Pick<UpdateOptions, 'wait'>,
): Promise<LeasesChanged> {
  if (changes.size === 0) return { written: new Set(), present: read, unwritten: changes };
  const decide = (item: Item | undefined) => {
    const present = item === read.item ? read : { leases: decodeLeases(item), item };
    const open = unchanged(changes, read, present);
    return { present, open, write: open.size === 0 ? undefined : contentOf(present, open) };
  };
  const result = await writeUntilWon(table, cluster, LEASES, decide, { ...options, recent: read });
  if (result.outcome === 'won') {
    const { present, open } = result.decision;
    const leases = afterChanges(present.leases, open);
    const written = new Set(result.withheld ? [] : open.keys());
    const lost = new Map([...changes].filter(([address]) => !open.has(address)));
    return { written, present: { leases, item: result.item }, unwritten: notOverwritten(lost, read, present) };
  }
  const present = result.outcome === 'kept' ? result.decision.present : await readLeases(table, cluster);
  return { written: new Set(), present, unwritten: notOverwritten(changes, read, present) };
}

/** Returns only the changes of leases in which other writers have changed nothing since the read, or only the misses. */
export function notOverwritten(changes: LeaseChanges, read: StoredLeases, present: StoredLeases): LeaseChanges {
  return unchanged(
    changes,
    read,
    present,
    ({ misses: _, missedAtMs: __, lateSinceMs: ___, lastProbe: ____, ...rest }) => rest,
  );
}

/** Returns only the changes of leases of which no other writer has changed the compared part since the read. */
function unchanged(
  changes: LeaseChanges,
  read: StoredLeases,
  present: StoredLeases,
  compared: (lease: Lease) => object = (lease) => lease,
): LeaseChanges {
  const partIn = (stored: StoredLeases, address: string) => {
    const lease = leaseOf(stored, address);
    return lease && compared(lease);
  };
  return new Map(
    [...changes].filter(([address]) => isDeepStrictEqual(partIn(read, address), partIn(present, address))),
  );
}

/**
 * Changes the lease of one address, again and again until no other writer is faster. The write is conditional on all leases by
 * which `change` decided. Without a lease nothing is written.
 * @returns the result of the last change.
 * @throws TableError `Contended` when other writers won every time or the outcome is unclear.
 */
export function updateLease<Result>(
  table: KeyValueTable,
  cluster: string,
  change: (leases: readonly Lease[]) => { readonly lease?: Lease; readonly result: Result },
  options?: UpdateOptions,
): Promise<Result> {
  return guaranteedUpdate<Result>(
    table,
    cluster,
    LEASES,
    (item) => {
      const leases = decodeLeases(item);
      const { lease, result } = change(leases);
      if (lease === undefined) return { keep: result };
      return { write: contentOf({ leases, item }, new Map([[lease.address, lease]])), result };
    },
    options,
  );
}

/** Searches in halves: leases are in the order of their addresses. */
export function leaseOf({ leases }: Pick<StoredLeases, 'leases'>, address: string): Lease | undefined {
  let [from, to] = [0, leases.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const lease = leases[middle];
    if (lease?.address === address) return lease;
    if (lease !== undefined && lease.address < address) from = middle + 1;
    else to = middle;
  }
  return undefined;
}

/** The item's own expiry is only for the TTL; the expiry of a lease is in its value. */
function contentOf({ leases, item }: StoredLeases, changes: LeaseChanges): Omit<NewItem, 'cluster' | 'key'> {
  const changed = [...changes].map(([address, lease]) => [address, lease && leaseValue(lease)] as const);
  const ends = afterChanges(leases, changes).map(endOf);
  return {
    schema: SCHEMA,
    // Leases of other addresses stay unchanged.
    value: { ...(item && fieldsIn(item.value)), ...Object.fromEntries(changed) },
    expiresAtMs: Math.max(0, ...ends) + REMEMBERED_MS,
  };
}

/** Common values of the fields of a lease, which are not stored: five API servers take less than 1 KB. */
const USUAL = { source: 'probe', misses: 0, seenDown: false } as const;

/**
 * The states as they are stored: a withdrawal has `withdrawnUntilMs`, and a server that shuts down has only `seenDown`.
 */
const leasesShape = z.record(
  z.string(),
  z.object({
    generation: count,
    source: z._default(z.enum(['probe', 'agent']), USUAL.source),
    expiresAtMs: z.number(),
    misses: z._default(count, USUAL.misses),
    seenDown: z._default(z.boolean(), USUAL.seenDown),
    host: z.exactOptional(z.string()),
    missedAtMs: z.exactOptional(z.number()),
    lateSinceMs: z.exactOptional(z.number()),
    withdrawnUntilMs: z.exactOptional(z.number()),
    lastProbe: z.exactOptional(z.string()),
  }),
);

function leaseValue({ address: _, state, ...fields }: Lease): TableValue {
  const usual = new Map<string, TableValue>(Object.entries(USUAL));
  const stored = Object.entries({ ...fields, ...(state === 'shuttingDown' && { seenDown: true }) });
  return Object.fromEntries(stored.filter(([field, content]) => content !== usual.get(field)));
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeLeases(item: Item | undefined): Lease[] {
  if (item === undefined) return [];
  const leases = decodeItem(item, leasesShape, SCHEMA, REMEDY);
  return Object.keys(leases)
    .sort()
    .flatMap((address) => (leases[address] === undefined ? [] : leaseFrom(address, leases[address])));
}

function leaseFrom(address: string, stored: z.infer<typeof leasesShape>[string]): Lease {
  const { withdrawnUntilMs, seenDown, ...fields } = stored;
  if (withdrawnUntilMs === undefined) return { address, ...fields, state: seenDown ? 'shuttingDown' : 'leased' };
  return { address, ...fields, state: 'withdrawn', withdrawnUntilMs, seenDown };
}
