import type { IPFamily } from '../allocator/ip-address.ts';
import type { RefusalCode } from '../allocator/refusal.ts';
import type { TableEnvironment } from '../runtime/environment.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { RANGE_KEYS, type RangeKey } from '../spec/spec-ranges.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { refusalOfUnrepaired } from '../table/range-allocations.ts';
import { unwrittenTable } from '../table/table-views.ts';
import { cutText } from '../util/values.ts';
import {
  type AllocationResult,
  allocatePlan,
  configuredFamilies,
  type PlanAllocationOptions,
} from './allocate-plan.ts';
import { isEmpty, type Plan, planOf } from './plan.ts';
import type { Review, WebhookReply } from './request.ts';
import {
  type AllocatedItems,
  namePatch,
  type PatchOperation,
  patchOf,
  type RefusalStatus,
  tooMany,
  tooManyPortsRefusal,
} from './response.ts';
import { holdOwnerOf, NAME, serviceName } from './service.ts';

export type Verdict =
  /** The Service needs no new address or port, has an invalid name, or belongs to a cluster whose API servers allocate. */
  | { readonly outcome: 'leftAlone'; readonly reason?: string }
  | { readonly outcome: 'allocated'; readonly patch: readonly PatchOperation[]; readonly items: AllocatedItems }
  | { readonly outcome: 'refused'; readonly code: string; readonly status: RefusalStatus }
  /** The table cannot allocate at the moment. */
  | { readonly outcome: 'failed'; readonly code: string; readonly message: string }
  | { readonly outcome: 'notRegistered' }
  /** The answer in `mode: observe`. `wouldBe` is the answer that `mode: enforce` would give. */
  | { readonly outcome: 'observed'; readonly wouldBe: Verdict };

export interface AdmitOptions extends PlanAllocationOptions {
  readonly stack: string | undefined;
  readonly newSuffix: () => string;
  readonly nowMs: () => number;
}

/** The refusals that the registry gives too. Any other refusal means that the table cannot allocate at the moment. */
const ABOUT_THE_REQUEST: ReadonlySet<RefusalCode> = new Set(['AlreadyAllocated', 'NotInRange', 'Full'] as const);

/** The maximum number of node ports in one review. A request to allocate has the same limit. */
const MOST_PORTS = 256;

const ANY_FAMILIES: readonly (readonly IPFamily[])[] = [['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']];

/**
 * Allocates from the table the items that a Service lacks, and returns the verdict.
 * @throws TableError. The repair then frees items that stay allocated without a Service.
 */
export async function admit(clusterName: string, review: Review, options: AdmitOptions): Promise<Verdict> {
  const { service, oldService, dryRun } = review;
  const plan = (families: readonly IPFamily[]) => planOf(service.spec, oldService?.spec, families);
  // Most changes of a Service need no new address or port, whatever the IP families of the cluster are. The answer to
  // such a change does not need the table.
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
  const { table, nowMs } = options;
  const { service, namespace, operation } = review;
  const name = serviceName(service, options.newSuffix);
  if (!NAME.test(name) || !NAME.test(namespace))
    return { outcome: 'leftAlone', reason: 'a name that no Service can have' };
  if (plan.ports.length > MOST_PORTS) {
    const status = tooManyPortsRefusal(name, plan.ports.length, MOST_PORTS);
    return { outcome: 'refused', code: 'TooManyPorts', status };
  }
  const unrepaired = await refusalOfUnrepaired(table, cluster.spec, rangesOf(plan), nowMs());
  if (unrepaired !== undefined) return { outcome: 'failed', code: unrepaired.code, message: unrepaired.message };
  const claim = { nowMs, holdOwner: holdOwnerOf(service) };
  const ofService = { service: { namespace, name }, isNew: operation === 'CREATE', claim };
  const result = await allocatePlan(plan, cluster, ofService, options);
  if (result.outcome === 'refused') return verdictOf(result);
  const { items } = result;
  return { outcome: 'allocated', patch: [...namePatch(service, name), ...patchOf(plan, items, service.spec)], items };
}

function rangesOf({ addresses, ports }: Plan): readonly RangeKey[] {
  const { primary, nodePorts } = RANGE_KEYS;
  return [...(addresses.length > 0 ? [primary] : []), ...(ports.length > 0 ? [nodePorts] : [])];
}

function verdictOf({ outcome, code, message, status }: Extract<AllocationResult, { outcome: 'refused' }>): Verdict {
  if (code === 'TooManyUnclaimed') return { outcome, code, status: tooMany(message) };
  if (status !== undefined && ABOUT_THE_REQUEST.has(code)) return { outcome, code, status };
  return { outcome: 'failed', code, message };
}

function dry(options: AdmitOptions): AdmitOptions {
  const table = unwrittenTable(options.table, { nowMs: options.nowMs });
  return { ...options, table, closingTable: table };
}

/** The longest text in a log line. An invalid name in a review may be almost as long as the whole review. */
const LONGEST_TEXT = 1_000;

/** Logs the refusal of an HTTP request that the webhook does not review. The log line contains no part of the token. */
export function logFault(
  { telemetry }: Invocation<TableEnvironment>,
  reply: WebhookReply,
  cluster: string | undefined,
  reason: string,
): WebhookReply {
  const { statusCode } = reply;
  telemetry.log('warn', 'admission: not answered', { cluster, statusCode, reason });
  telemetry.count('allocationsRefused', 1, `Http${statusCode}`);
  return reply;
}

export function logVerdict(
  { telemetry }: Invocation<TableEnvironment>,
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
    service: cutText(`${namespace}/${name === '' ? `${generateName}*` : name}`, LONGEST_TEXT),
    ...(dryRun && { dryRun }),
    ...fieldsOf(verdict),
    retries,
  });
  telemetry.count('allocationRetries', retries);
  if (verdict.outcome === 'refused' || verdict.outcome === 'failed') {
    telemetry.count('allocationsRefused', 1, verdict.code);
  }
  if (verdict.outcome === 'allocated' && !dryRun) {
    telemetry.count('allocations', verdict.items.addresses.length + verdict.items.ports.length);
  }
}

function fieldsOf(verdict: Verdict): Readonly<Record<string, string | readonly string[] | undefined>> {
  switch (verdict.outcome) {
    case 'allocated':
      return { clusterIPs: verdict.items.addresses, nodePorts: verdict.items.ports.map(String) };
    case 'refused':
      return { reason: cutText(verdict.status.message, LONGEST_TEXT) };
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
