import { canonicalAddress, type IPFamily } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal, type RefusalCode } from '../allocator/refusal.ts';
import type { Requested } from '../range/operations.ts';
import type { ServiceAllocation, ServiceAllocationOptions } from '../range/service-allocation.ts';
import { RANGE_KEYS, type RangeKey } from '../spec/spec-ranges.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { type KeyValueTable, TableError } from '../table/key-value-table.ts';
import {
  configuredRange,
  type RangeOptions,
  rangeAllocations,
  refusalOfUnrepaired,
} from '../table/range-allocations.ts';
import { unwrittenTable } from '../table/table-views.ts';
import { isEmpty, type Plan, planOf } from './plan.ts';
import type { Review } from './request.ts';
import {
  type AllocatedItems,
  addressRefusal,
  failure,
  namePatch,
  type PatchOperation,
  patchOf,
  portRefusal,
  type RefusalStatus,
  tooManyPortsRefusal,
} from './response.ts';
import { holdOwnerOf, NAME, serviceName } from './service.ts';

export type Verdict =
  /** `leftAlone`: no new address or port is needed, a name is invalid, or the API servers of the cluster allocate. */
  | { readonly outcome: 'leftAlone' | 'notRegistered'; readonly reason?: string }
  | { readonly outcome: 'allocated'; readonly patch: readonly PatchOperation[]; readonly items: AllocatedItems }
  | Refused
  /** The answer in `mode: observe`. `wouldBe` is the answer that `mode: enforce` would give. */
  | { readonly outcome: 'observed'; readonly wouldBe: Verdict };

type Refused =
  | { readonly outcome: 'refused'; readonly code: string; readonly reason: string; readonly status: RefusalStatus }
  /** The table cannot allocate at the moment. */
  | { readonly outcome: 'failed'; readonly code: string; readonly reason: string };

export interface AdmitOptions {
  readonly table: KeyValueTable;
  /** The same table with a later deadline, for the release of items after the deadline of `table`. */
  readonly closingTable: KeyValueTable;
  readonly stack: string | undefined;
  readonly pick: PickIndex;
  readonly update: RangeOptions;
  readonly nowMs: () => number;
  /** Logs that an item could not be released. The repair frees it as a leak. */
  readonly logUnreleased: (error: TableError) => void;
}

/** The refusals that the registry gives too. Any other refusal means that the table cannot allocate at the moment. */
const ABOUT_THE_REQUEST: ReadonlySet<RefusalCode> = new Set(['AlreadyAllocated', 'NotInRange', 'Full'] as const);

/** The maximum number of node ports in one review. A request to allocate has the same limit. */
const MOST_PORTS = 256;

const ANY_FAMILIES: readonly (readonly IPFamily[])[] = [['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']];

/** Allocates the items that a Service lacks. @throws TableError: a repair then frees allocated items that no Service has */
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
  if (owner !== undefined) return failed('OtherStack', `the cluster belongs to the stack ${owner}`);
  const wanted = plan(spec.serviceClusterIPRanges.map(familyOfRange));
  if (isEmpty(wanted)) return { outcome: 'leftAlone' };
  const isObserved = spec.mode === 'observe';
  const verdict = await allocate(cluster, review, wanted, isObserved || dryRun ? dry(options) : options);
  return isObserved ? { outcome: 'observed', wouldBe: verdict } : verdict;
}

function familyOfRange(cidr: string): IPFamily {
  return parseCidr(cidr)?.family ?? 'IPv4';
}

function dry(options: AdmitOptions): AdmitOptions {
  const table = unwrittenTable(options.table, { nowMs: options.nowMs });
  return { ...options, table, closingTable: table };
}

async function allocate(
  cluster: RegisteredCluster,
  { service, namespace, operation }: Review,
  plan: Plan,
  options: AdmitOptions,
): Promise<Verdict> {
  const { table, nowMs } = options;
  const name = serviceName(service, options.pick);
  if (!NAME.test(name) || !NAME.test(namespace))
    return { outcome: 'leftAlone', reason: 'a name that no Service can have' };
  if (plan.ports.length > MOST_PORTS) {
    return refused('TooManyPorts', tooManyPortsRefusal(name, plan.ports.length, MOST_PORTS));
  }
  const unrepaired = await refusalOfUnrepaired(table, cluster.spec, rangesOf(plan), nowMs());
  if (unrepaired !== undefined) return failed(unrepaired.code, unrepaired.message);
  const claim = { nowMs, holdOwner: holdOwnerOf(service) };
  const ofService = { service: { namespace, name }, isNew: operation === 'CREATE', claim };
  const items = await allocatePlan(plan, cluster, ofService, options);
  if ('outcome' in items) return items;
  return { outcome: 'allocated', patch: [...namePatch(service, name), ...patchOf(plan, items, service.spec)], items };
}

function rangesOf({ addresses, ports }: Plan): readonly RangeKey[] {
  const { primary, nodePorts } = RANGE_KEYS;
  return [...(addresses.length > 0 ? [primary] : []), ...(ports.length > 0 ? [nodePorts] : [])];
}

/** Allocates either all items of a plan or no item. */
async function allocatePlan(
  plan: Plan,
  cluster: RegisteredCluster,
  ofService: Omit<ServiceAllocationOptions, 'named'>,
  { table, closingTable, pick, update, logUnreleased }: AdmitOptions,
): Promise<AllocatedItems | Refused> {
  const undos: (() => Promise<void>)[] = [];
  const allocateFrom: AllocateFrom = async (key, wanted, named) => {
    const range = configuredRange(cluster, key, pick);
    if (range === undefined) throw new Error(`Cluster ${cluster.spec.name} has no ${key}`);
    const given = await rangeAllocations(table, range, update).allocateFor(wanted, { ...ofService, named });
    if (!isRefused(given)) undos.push(() => rangeAllocations(closingTable, range, update).undo(given.undo));
    return given;
  };
  let isDone = false;
  try {
    const items = await allocateEach(ofService.service.name, plan, cluster, allocateFrom);
    isDone = !('outcome' in items);
    return items;
  } finally {
    for (const undo of isDone ? [] : undos.reverse()) {
      await undo().catch((error: unknown) => {
        if (!(error instanceof TableError)) throw error;
        logUnreleased(error);
      });
    }
  }
}

type AllocateFrom = (
  key: RangeKey,
  wanted: readonly Requested[],
  named: readonly string[],
) => Promise<ServiceAllocation>;

/** Allocates addresses before ports, as the registry does. */
async function allocateEach(
  name: string,
  plan: Plan,
  { spec: { serviceClusterIPRanges } }: RegisteredCluster,
  allocateFrom: AllocateFrom,
): Promise<AllocatedItems | Refused> {
  const { ports, named } = plan;
  const addresses: string[] = [];
  for (const wanted of plan.addresses) {
    const isPrimary = wanted.family === familyOfRange(serviceClusterIPRanges[0]);
    const key = isPrimary ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
    const given = await allocateFrom(key, [canonical(wanted.value) || undefined], named.addresses.map(canonical));
    if (isRefused(given)) return verdictOf(given, addressRefusal(name, plan, wanted, given));
    addresses.push(...given.items);
  }
  if (ports.length === 0) return { addresses, ports: [] };
  const requested = ports.map(({ value }) => (value === 0 ? undefined : String(value)));
  const given = await allocateFrom(RANGE_KEYS.nodePorts, requested, named.ports.map(String));
  if (!isRefused(given)) return { addresses, ports: given.items.map(Number) };
  const port = ports[given.index ?? -1];
  return verdictOf(given, port && portRefusal(name, port, given));
}

function canonical(address: string): string {
  return canonicalAddress(address) ?? address;
}

/** @param status the registry's refusal of the item. Absent if the refusal is not about a single item */
function verdictOf({ code, message }: Refusal, status: RefusalStatus | undefined): Refused {
  // The client can repeat the request after a repair pass.
  if (code === 'TooManyUnclaimed') return refused(code, failure(429, 'TooManyRequests', message));
  return status !== undefined && ABOUT_THE_REQUEST.has(code) ? refused(code, status) : failed(code, message);
}

function refused(code: string, status: RefusalStatus): Refused {
  return { outcome: 'refused', code, status, reason: status.message };
}

export function failed(code: string, message: string): Refused {
  return { outcome: 'failed', code, reason: `${code}: ${message}` };
}
