import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { countBefore } from '../allocator/network.ts';
import { afterChanges, endOf, type Lease, type LeaseChanges } from '../leases/lease.ts';
import { count } from '../spec/shapes.ts';
import { type Change, guaranteedUpdate, type UpdateOptions, writeUntilWon } from './guaranteed-update.ts';
import type { Item, KeyValueTable, NewItem, TableValue } from './key-value-table.ts';
import { decodeItem, fieldsIn } from './stored-item.ts';

/** The key of the item that contains all leases of a cluster, so that a pass writes them with one put (docs/adr/0018). */
export const LEASES = 'masterleases';
const SCHEMA = 1;
const REMEDY = 'correct it, or remove it, which ends all deregistrations of the cluster';

/**
 * The item of all leases stays in the table for this long after the last lease or withdrawal has ended. If it were deleted
 * during an outage of the functions, no server would have a lease, and one failed probe could remove a healthy server.
 */
const REMEMBERED_MS = 24 * 60 * 60 * 1000;

export interface StoredLeases {
  /** Active and expired leases, in byte order of their addresses: 10.0.0.10 is before 10.0.0.2. */
  readonly leases: readonly Lease[];
  readonly item: Item | undefined;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readLeases(table: KeyValueTable, cluster: string): Promise<StoredLeases> {
  const item = await table.get(cluster, LEASES);
  return { leases: decodeLeases(item), item };
}

export interface LeasesChanged {
  /** The addresses whose lease was written. Empty if the put was lost, has an unclear outcome, or was withheld. */
  readonly written: ReadonlySet<string>;
  /** The leases after the put, even if it was withheld. If no put succeeded, these are the leases that were read last. */
  readonly present: StoredLeases;
  /** The changes that were not written and may still be written (`notOverwritten`). */
  readonly unwritten: LeaseChanges;
}

/**
 * Changes leases with one put. Changes the lease of an address only if the stored lease still equals the lease in
 * `read`. If another writer was faster, the put is repeated for the leases that the other writer did not change, a limited
 * number of times. A put with an unclear outcome is not repeated.
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

/**
 * Returns the changes that may still be written: those of leases that no other writer has changed since the read. Ignores
 * differences in misses, late probes and the last probe.
 */
export function notOverwritten(changes: LeaseChanges, read: StoredLeases, present: StoredLeases): LeaseChanges {
  return unchanged(
    changes,
    read,
    present,
    ({ misses: _, missedAtMs: __, lateSinceMs: ___, lastProbe: ____, ...rest }) => rest,
  );
}

/** Returns the changes of leases that no other writer has changed since the read. Compares only what `compared` returns. */
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
 * Changes the lease of one address, and repeats this if another writer was faster. The write is conditional on all leases
 * that `change` received. If `change` returns no lease, nothing is written. Returns the result of the last change.
 * @throws TableError `Contended` if other writers won every attempt, or the outcome is unclear.
 */
export function updateLease<Result>(
  table: KeyValueTable,
  cluster: string,
  change: (leases: readonly Lease[]) => { readonly lease?: Lease; readonly result: Result },
  options?: UpdateOptions,
): Promise<Result> {
  const update = (item: Item | undefined): Change<Result> => {
    const leases = decodeLeases(item);
    const { lease, result } = change(leases);
    if (lease === undefined) return { keep: result };
    return { write: contentOf({ leases, item }, new Map([[lease.address, lease]])), result };
  };
  return guaranteedUpdate(table, cluster, LEASES, update, options);
}

/** Returns the lease of an address. The leases are sorted by address. */
export function leaseOf({ leases }: Pick<StoredLeases, 'leases'>, address: string): Lease | undefined {
  const lease = leases[countBefore(leases, (each) => each.address < address)];
  return lease?.address === address ? lease : undefined;
}

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

/** The usual values of fields. They are not stored, so that the leases of five API servers take less than 1 KB. */
const USUAL = { source: 'probe', misses: 0, seenDown: false } as const;

/** The stored leases. A lease with `withdrawnUntilMs` is withdrawn. Otherwise, `seenDown` means that the server shuts down. */
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
