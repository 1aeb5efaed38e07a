import type { AllocatorErrorCode } from '../allocator/errors.ts';
import { canonicalAddress, type IPFamily } from '../allocator/ip-address.ts';
import type { Pick } from '../allocator/range-allocator.ts';
import { type GivenTo, givenLately, isUnrecorded, NO_ITEMS, recordGiven } from '../table/admissions.ts';
import { type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { TableError } from '../table/errors.ts';
import type { UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { type PatchOperation, patchOf, type TakenItems } from './patch.ts';
import { isEmpty, type Plan, planOf } from './plan.ts';
import { configuredFamilies, openRanges } from './ranges.ts';
import { addressRefusal, portRefusal, type RefusalStatus } from './refusals.ts';
import type { Review } from './review.ts';
import { holdOwnerOf } from './service.ts';
import { type TakeResult, takeFor } from './take.ts';

export type Verdict =
  /** Nothing is missing, or nothing of it is this table's to give. */
  | { readonly outcome: 'leftAlone'; readonly reason?: string }
  | { readonly outcome: 'allocated'; readonly patch: readonly PatchOperation[]; readonly items: TakenItems }
  | { readonly outcome: 'refused'; readonly code: string; readonly status: RefusalStatus }
  /** The table can give nothing now. */
  | { readonly outcome: 'failed'; readonly code: string; readonly message: string }
  | { readonly outcome: 'notRegistered' }
  /** With `mode: observe`: what it would have come to. */
  | { readonly outcome: 'observed'; readonly wouldBe: Verdict };

export interface AdmitOptions {
  readonly table: KeyValueTable;
  /** Ends a little later, to give back what was taken. */
  readonly closingTable: KeyValueTable;
  readonly stack: string | undefined;
  readonly pick: Pick;
  readonly update: UpdateOptions;
  readonly nowMs: () => number;
  readonly tell: (error: TableError) => void;
}

/** The refusals that are about what was asked; any other is about the table, and another time may be better. */
const ABOUT_THE_REQUEST: ReadonlySet<AllocatorErrorCode> = new Set(['AlreadyAllocated', 'NotInRange', 'Full'] as const);

type Refusal = Extract<TakeResult, { outcome: 'refused' }>;

const ANY_FAMILIES: readonly (readonly IPFamily[])[] = [['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']];

/** Takes from the table what a Service lacks. @throws TableError, and then nothing is known to be taken. */
export async function admit(clusterName: string, review: Review, options: AdmitOptions): Promise<Verdict> {
  const { service, oldService, dryRun } = review;
  const plan = (families: readonly IPFamily[]) => planOf(service.spec, oldService?.spec, families);
  // Most changes of a Service need nothing, whatever the cluster is like, and wait for no table.
  if (ANY_FAMILIES.every((families) => isEmpty(plan(families)))) return { outcome: 'leftAlone' };

  const cluster = await readCluster(options.table, clusterName);
  if (cluster === undefined) return { outcome: 'notRegistered' };
  const { spec, owner } = cluster;
  if (spec.allocator === 'apiserver') return { outcome: 'leftAlone', reason: 'allocator: apiserver' };
  if (owner !== undefined && options.stack !== undefined && owner.stack !== options.stack) {
    return { outcome: 'failed', code: 'OtherStack', message: `the cluster belongs to the stack ${owner.stack}` };
  }
  const wanted = plan(configuredFamilies(spec));
  if (isEmpty(wanted)) return { outcome: 'leftAlone' };
  if (spec.mode === 'observe') {
    return { outcome: 'observed', wouldBe: await allocate(cluster, review, wanted, dry(options)) };
  }
  return allocate(cluster, review, wanted, dryRun ? dry(options) : options);
}

async function allocate(
  cluster: RegisteredCluster,
  review: Review,
  plan: Plan,
  options: AdmitOptions,
): Promise<Verdict> {
  const { table, closingTable, nowMs, update, tell } = options;
  const { service } = review;
  const { name } = cluster.spec;
  const known = givenTo(review, firstNamed(plan));
  const lately = known === undefined ? NO_ITEMS : await givenLately(table, name, known, nowMs());
  const taken = await takeFor(plan, {
    ranges: openRanges(table, cluster, options),
    closing: openRanges(closingTable, cluster, options),
    lately,
    holdOwner: holdOwnerOf(service),
    nowMs,
    tell,
  });
  if (taken.outcome === 'refused') return refusalOf(service.metadata.name, plan, taken);
  const { items, fresh } = taken;
  const to = givenTo(review, items.addresses[0] ?? items.ports[0]);
  if (to !== undefined && fresh.addresses.length + fresh.ports.length > 0) {
    try {
      await recordGiven(table, name, to, fresh, nowMs(), update);
    } catch (error) {
      const isFree = await orTell(tell, () => isUnrecorded(closingTable, name, to, fresh, nowMs(), update));
      if (isFree) await taken.undo();
      throw error;
    }
  }
  return { outcome: 'allocated', patch: patchOf(plan, items, service.spec), items };
}

/** What cannot be found out is told, and what was taken stays taken: a pass frees it. */
async function orTell(tell: AdmitOptions['tell'], find: () => Promise<boolean>): Promise<boolean> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof TableError)) throw error;
    tell(error);
    return false;
  }
}

function refusalOf(name: string, plan: Plan, { error, address, port }: Refusal): Verdict {
  if (ABOUT_THE_REQUEST.has(error.code)) {
    const { code } = error;
    if (address !== undefined) return { outcome: 'refused', code, status: addressRefusal(name, plan, address, error) };
    if (port !== undefined) return { outcome: 'refused', code, status: portRefusal(name, port, error) };
  }
  return { outcome: 'failed', code: error.code, message: error.message };
}

/** Whose the items are. A Service whose name the API server is yet to make is known by the first of them. */
function givenTo({ namespace, service, operation }: Review, first: string | number | undefined): GivenTo | undefined {
  const { name, generateName } = service.metadata;
  if (name !== '' || operation === 'UPDATE') return { namespace, name };
  return first === undefined ? undefined : { namespace, generateName, first };
}

function firstNamed({ addresses: [address], ports: [port] }: Plan): string | number | undefined {
  if (address === undefined) return port?.value;
  return address.value && (canonicalAddress(address.value) ?? address.value);
}

/** Writes are seen by the rest of the invocation alone. */
function dry(options: AdmitOptions): AdmitOptions {
  let writes = 0;
  const table = unwrittenTable(options.table, { nowMs: options.nowMs, newWriteId: () => `dry-${++writes}` });
  return { ...options, table, closingTable: table };
}
