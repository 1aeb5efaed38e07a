import { canonicalAddress, type IPFamily } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { RANGE_KEYS } from '../cluster/spec-ranges.ts';
import { addressRange, type ConfiguredRange, nodePortRange } from '../range/configured-range.ts';
import type { ServiceAllocationOptions } from '../range/service-allocation.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { type KeyValueTable, TableError } from '../table/key-value-table.ts';
import { type RangeOptions, rangeAllocations } from '../table/range-allocations.ts';
import type { Plan, WantedAddress, WantedPort } from './plan.ts';
import type { AllocatedItems } from './response.ts';

export interface PlanAllocationOptions {
  readonly table: KeyValueTable;
  /** The same table with a later deadline, for the release of items after the deadline of `table`. */
  readonly closingTable: KeyValueTable;
  readonly pick: PickIndex;
  readonly update: RangeOptions;
  /** Logs that an item could not be released. The repair frees it as a leak. */
  readonly logUnreleased: (error: TableError) => void;
}

type OfService = Omit<ServiceAllocationOptions<never>, 'named'>;

export type AllocationResult =
  | { readonly outcome: 'allocated'; readonly items: AllocatedItems }
  | (Refusal & { readonly address?: WantedAddress; readonly port?: WantedPort });

export function configuredFamilies({ serviceClusterIPRanges }: ClusterSpec): readonly IPFamily[] {
  return serviceClusterIPRanges.flatMap((cidr) => parseCidr(cidr)?.family ?? []);
}

/**
 * Allocates all items of a plan or none.
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
  const allocateFrom: AllocateFrom = async (range, values, named) => {
    const wanted = values.map((value) => value || undefined);
    const given = await rangeAllocations(table, range, update).allocateFor(wanted, { ...ofService, named });
    if (!isRefused(given)) undos.push(() => rangeAllocations(closingTable, range, update).undo(given.undo));
    return given;
  };
  try {
    const result = await allocateEach(plan, cluster, pick, allocateFrom);
    if (isRefused(result)) await undoAll();
    return result;
  } catch (error) {
    await undoAll();
    throw error;
  }
}

/** Allocates values. An empty text or 0 stands for any free item. */
type AllocateFrom = <Item extends string | number>(
  range: ConfiguredRange<Item>,
  values: readonly Item[],
  named: readonly Item[],
) => Promise<{ readonly outcome: 'allocated'; readonly items: readonly Item[] } | Refusal>;

/** Allocates addresses before ports, as the registry does. */
async function allocateEach(
  { addresses, ports, named }: Plan,
  cluster: RegisteredCluster,
  pick: PickIndex,
  allocateFrom: AllocateFrom,
): Promise<AllocationResult> {
  const items: string[] = [];
  for (const address of addresses) {
    const { family, value } = address;
    const range = rangeOfFamily(cluster, family, pick);
    const given = await allocateFrom(range, [canonical(value)], named.addresses.map(canonical));
    if (isRefused(given)) return { ...given, address };
    items.push(...given.items);
  }
  if (ports.length === 0) return { outcome: 'allocated', items: { addresses: items, ports: [] } };
  const values = ports.map(({ value }) => value);
  const given = await allocateFrom(nodePortRange(cluster, pick), values, named.ports);
  if (!isRefused(given)) return { outcome: 'allocated', items: { addresses: items, ports: given.items } };
  const port = ports[given.index ?? -1];
  return { ...given, ...(port !== undefined && { port }) };
}

function rangeOfFamily(cluster: RegisteredCluster, family: IPFamily, pick: PickIndex): ConfiguredRange<string> {
  const [first] = configuredFamilies(cluster.spec);
  const range = addressRange(cluster, family === first ? RANGE_KEYS.primary : RANGE_KEYS.secondary, pick);
  if (range === undefined) throw new Error(`Cluster ${cluster.spec.name} has no ${family} range`);
  return range;
}

function canonical(address: string): string {
  return canonicalAddress(address) ?? address;
}
