import type { Pick } from '../allocator/bitmap.ts';
import type { AllocatorErrorCode } from '../allocator/errors.ts';
import type { IPFamily } from '../allocator/ip-address.ts';
import { RANGE_KEYS, type RangeKey } from '../cluster/spec-ranges.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { TableError } from '../table/errors.ts';
import type { UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { refusalOfUnrepaired } from '../table/run-records.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { isEmpty, type Plan, planOf } from './plan.ts';
import type { HttpReply, OtherReview, Review } from './request.ts';
import {
  addressRefusal,
  namePatch,
  type PatchOperation,
  patchOf,
  portRefusal,
  type RefusalStatus,
  type TakenItems,
  tooMany,
  tooManyPortsRefusal,
} from './response.ts';
import { holdOwnerOf, NAME, serviceName } from './service.ts';
import { configuredFamilies, openRanges, type TakeResult, takeFor } from './take.ts';

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
  /** The end of a generated name: new each time. */
  readonly newSuffix: () => string;
  readonly nowMs: () => number;
  readonly tell: (error: TableError) => void;
}

/** The refusals that are about what was asked; any other is about the table, and another time may be better. */
const ABOUT_THE_REQUEST: ReadonlySet<AllocatorErrorCode> = new Set(['AlreadyAllocated', 'NotInRange', 'Full'] as const);

/** Node ports of one review: as many as a request to allocate may have. */
const MOST_PORTS = 256;

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
  const { spec } = cluster;
  if (spec.allocator === 'apiserver') return { outcome: 'leftAlone', reason: 'allocator: apiserver' };
  const owner = otherOwner(cluster, options.stack);
  if (owner !== undefined) {
    return { outcome: 'failed', code: 'OtherStack', message: `the cluster belongs to the stack ${owner}` };
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
  const { table, closingTable, nowMs, tell } = options;
  const { service, namespace, operation } = review;
  const name = serviceName(service, options.newSuffix);
  if (!NAME.test(name) || !NAME.test(namespace))
    return { outcome: 'leftAlone', reason: 'a name that no Service can have' };
  if (plan.ports.length > MOST_PORTS) return tooManyPorts(name, plan.ports.length);
  const unrepaired = await refusalOfUnrepaired(table, cluster.spec, rangesOf(plan), nowMs());
  if (unrepaired !== undefined) return { outcome: 'failed', code: unrepaired.code, message: unrepaired.message };
  const holdOwner = holdOwnerOf(service);
  const taken = await takeFor(plan, {
    ranges: openRanges(table, cluster, options),
    closing: openRanges(closingTable, cluster, options),
    service: { namespace, name },
    isNew: operation === 'CREATE',
    claim: { nowMs: nowMs(), ...(holdOwner !== undefined && { holdOwner }) },
    tell,
  });
  if (taken.outcome === 'refused') return refusalOf(name, plan, taken);
  const { items } = taken;
  return { outcome: 'allocated', patch: [...namePatch(service, name), ...patchOf(plan, items, service.spec)], items };
}

/** One for each loop that repairs what is wanted. */
function rangesOf({ addresses, ports }: Plan): readonly RangeKey[] {
  const { primary, nodePorts } = RANGE_KEYS;
  return [...(addresses.length > 0 ? [primary] : []), ...(ports.length > 0 ? [nodePorts] : [])];
}

function refusalOf(name: string, plan: Plan, { error, address, port }: Refusal): Verdict {
  if (error.code === 'TooManyUnclaimed')
    return { outcome: 'refused', code: error.code, status: tooMany(error.message) };
  if (ABOUT_THE_REQUEST.has(error.code)) {
    const { code } = error;
    if (address !== undefined) return { outcome: 'refused', code, status: addressRefusal(name, plan, address, error) };
    if (port !== undefined) return { outcome: 'refused', code, status: portRefusal(name, port, error) };
  }
  return { outcome: 'failed', code: error.code, message: error.message };
}

function tooManyPorts(name: string, count: number): Verdict {
  return { outcome: 'refused', code: 'TooManyPorts', status: tooManyPortsRefusal(name, count, MOST_PORTS) };
}

/** Writes are seen by the rest of the invocation alone. */
function dry(options: AdmitOptions): AdmitOptions {
  let writes = 0;
  const table = unwrittenTable(options.table, { nowMs: options.nowMs, newWriteId: () => `dry-${++writes}` });
  return { ...options, table, closingTable: table };
}

/** Nobody has checked a Service's name by now: it may be as long as its object. */
const LONGEST_TEXT = 1_000;

/** One line for what is no review that was asked by who may. Nothing of the token is in it. */
export function tellFault(
  { telemetry }: Invocation,
  reply: HttpReply,
  cluster: string | undefined,
  reason: string,
): HttpReply {
  const { statusCode } = reply;
  telemetry.log('warn', 'admission: not answered', { cluster, statusCode, reason });
  // Not by cluster: names that strangers make up would each become a series, which costs money.
  telemetry.count('allocationsRefused', 1, { type: `Http${statusCode}` });
  return reply;
}

export function tellOther({ telemetry }: Invocation, cluster: string, { uid, other }: OtherReview): void {
  telemetry.log('info', 'admission: leftAlone', { cluster, request: uid, reason: other });
}

export function tellVerdict(
  { telemetry }: Invocation,
  cluster: string,
  review: Review,
  verdict: Verdict,
  retries: number,
): void {
  const { uid, operation, namespace, service, dryRun } = review;
  const { name, generateName } = service.metadata;
  const isFine = verdict.outcome !== 'refused' && verdict.outcome !== 'failed' && verdict.outcome !== 'notRegistered';
  telemetry.log(isFine ? 'info' : 'warn', `admission: ${verdict.outcome}`, {
    cluster,
    request: uid,
    operation,
    service: shortened(`${namespace}/${name === '' ? `${generateName}*` : name}`),
    ...(dryRun && { dryRun }),
    ...fieldsOf(verdict),
    retries,
  });
  telemetry.count('allocationRetries', retries, { cluster });
  if (verdict.outcome === 'refused' || verdict.outcome === 'failed') {
    telemetry.count('allocationsRefused', 1, { type: verdict.code, cluster });
  }
  if (verdict.outcome === 'allocated' && !dryRun) {
    telemetry.count('allocations', verdict.items.addresses.length + verdict.items.ports.length, { cluster });
  }
}

function fieldsOf(verdict: Verdict): Readonly<Record<string, string | readonly string[] | undefined>> {
  switch (verdict.outcome) {
    case 'allocated':
      return { clusterIPs: verdict.items.addresses, nodePorts: verdict.items.ports.map(String) };
    case 'refused':
      return { reason: shortened(verdict.status.message) };
    case 'failed':
      return { reason: `${verdict.code}: ${verdict.message}` };
    case 'leftAlone':
      return { reason: verdict.reason };
    case 'observed':
      return { wouldBe: verdict.wouldBe.outcome, ...fieldsOf(verdict.wouldBe) };
    case 'notRegistered':
      return {};
  }
}

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT).toWellFormed()}…` : text;
}
