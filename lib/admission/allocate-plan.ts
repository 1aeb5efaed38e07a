import { canonicalAddress, type IPFamily } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { Requested } from '../range/operations.ts';
import type { ServiceAllocationOptions } from '../range/service-allocation.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../spec/spec-ranges.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { type KeyValueTable, TableError } from '../table/key-value-table.ts';
import { configuredRange, type RangeOptions, rangeAllocations } from '../table/range-allocations.ts';
import type { Plan } from './plan.ts';
import { type AllocatedItems, addressRefusal, portRefusal, type RefusalStatus } from './response.ts';

export interface PlanAllocationOptions {
  readonly table: KeyValueTable;
  /** The same table with a later deadline, for the release of items after the deadline of `table`. */
  readonly closingTable: KeyValueTable;
  readonly pick: PickIndex;
  readonly update: RangeOptions;
  /** Logs that an item could not be released. The repair frees it as a leak. */
  readonly logUnreleased: (error: TableError) => void;
}

type OfService = Omit<ServiceAllocationOptions, 'named'>;

export type AllocationResult =
  | { readonly outcome: 'allocated'; readonly items: AllocatedItems }
  /** `status` is the registry's refusal of the item. Absent if the refusal is not about a single item. */
  | (Refusal & { readonly status?: RefusalStatus });

export function configuredFamilies({ serviceClusterIPRanges }: ClusterSpec): readonly IPFamily[] {
  return serviceClusterIPRanges.flatMap((cidr) => parseCidr(cidr)?.family ?? []);
}

/**
 * Allocates either all items of a plan or no item.
 * @throws TableError if the outcome is unknown. The repair frees items that could not be released.
 */
export async function allocatePlan(
  plan: Plan,
  cluster: RegisteredCluster,
  ofService: OfService,
  options: PlanAllocationOptions,
): Promise<AllocationResult> {
  const { table, closingTable, pick, update, logUnreleased } = options;
  const undos: (() => Promise<void>)[] = [];
  const undoAll = async () => {
    for (const undo of undos.reverse()) {
      try {
        await undo();
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        logUnreleased(error);
      }
    }
  };
  const allocateFrom: AllocateFrom = async (key, wanted, named) => {
    const range = configuredRange(cluster, key, pick);
    if (range === undefined) throw new Error(`Cluster ${cluster.spec.name} has no ${key}`);
    const given = await rangeAllocations(table, range, update).allocateFor(wanted, { ...ofService, named });
    if (!isRefused(given)) undos.push(() => rangeAllocations(closingTable, range, update).undo(given.undo));
    return given;
  };
  try {
    const result = await allocateEach(ofService.service.name, plan, cluster.spec, allocateFrom);
    if (isRefused(result)) await undoAll();
    return result;
  } catch (error) {
    await undoAll();
    throw error;
  }
}

type AllocateFrom = (
  key: RangeKey,
  requested: readonly Requested[],
  named: readonly string[],
) => Promise<{ readonly outcome: 'allocated'; readonly items: readonly string[] } | Refusal>;

/** Allocates addresses before ports, as the registry does. */
async function allocateEach(
  name: string,
  plan: Plan,
  spec: ClusterSpec,
  allocateFrom: AllocateFrom,
): Promise<AllocationResult> {
  const { addresses, ports, named } = plan;
  const [first] = configuredFamilies(spec);
  const items: string[] = [];
  for (const address of addresses) {
    const { family, value } = address;
    const key = family === first ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
    const given = await allocateFrom(key, [canonical(value) || undefined], named.addresses.map(canonical));
    if (isRefused(given)) return { ...given, status: addressRefusal(name, plan, address, given) };
    items.push(...given.items);
  }
  if (ports.length === 0) return { outcome: 'allocated', items: { addresses: items, ports: [] } };
  const requested = ports.map(({ value }) => (value === 0 ? undefined : String(value)));
  const given = await allocateFrom(RANGE_KEYS.nodePorts, requested, named.ports.map(String));
  if (!isRefused(given)) return { outcome: 'allocated', items: { addresses: items, ports: given.items.map(Number) } };
  const port = ports[given.index ?? -1];
  return { ...given, ...(port !== undefined && { status: portRefusal(name, port, given) }) };
}

function canonical(address: string): string {
  return canonicalAddress(address) ?? address;
}
