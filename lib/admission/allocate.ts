import { canonicalAddress, type IPFamily } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { RANGE_KEYS } from '../cluster/spec-ranges.ts';
import { addressRange, nodePortRange } from '../range/configured-range.ts';
import type { ServiceAllocationOptions } from '../range/service-allocation.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { type KeyValueTable, TableError } from '../table/key-value-table.ts';
import { type RangeAllocations, type RangeOptions, rangeAllocations } from '../table/range-allocations.ts';
import type { Plan, WantedAddress, WantedPort } from './plan.ts';
import type { AllocatedItems } from './response.ts';

export interface RangesOptions {
  readonly pick: PickIndex;
  readonly update: RangeOptions;
}

export interface ClusterRanges {
  readonly addresses: (family: IPFamily) => RangeAllocations<string>;
  readonly ports: RangeAllocations<number>;
}

export function configuredFamilies({ serviceClusterIPRanges }: ClusterSpec): readonly IPFamily[] {
  return serviceClusterIPRanges.flatMap((cidr) => parseCidr(cidr)?.family ?? []);
}

export function openRanges(
  table: KeyValueTable,
  cluster: RegisteredCluster,
  { pick, update }: RangesOptions,
): ClusterRanges {
  const [first] = configuredFamilies(cluster.spec);
  return {
    addresses: (family) => {
      const range = addressRange(cluster, family === first ? RANGE_KEYS.primary : RANGE_KEYS.secondary, pick);
      if (range === undefined) throw new Error(`Cluster ${cluster.spec.name} has no ${family} range`);
      return rangeAllocations(table, range, update);
    },
    ports: rangeAllocations(table, nodePortRange(cluster, pick), update),
  };
}

export interface PlanAllocationOptions extends Omit<ServiceAllocationOptions<never>, 'named'> {
  readonly ranges: ClusterRanges;
  /** The same ranges with a later deadline. Allocated items are released with them. */
  readonly closing: ClusterRanges;
  /** Logs that an item could not be released. The repair frees it as a leak. */
  readonly logUnreleased: (error: TableError) => void;
}

export type AllocationResult =
  | { readonly outcome: 'allocated'; readonly items: AllocatedItems }
  | (Refusal & { readonly address?: WantedAddress; readonly port?: WantedPort });

/**
 * Allocates all items of a plan or none. If the allocation of one item is refused or fails, the others are released.
 * Addresses are allocated before ports, as in the registry.
 * @throws TableError if the outcome is unknown. The repair frees items that could not be released.
 */
export async function allocateFor(plan: Plan, options: PlanAllocationOptions): Promise<AllocationResult> {
  const { closing, logUnreleased } = options;
  const undos: Undos = [];
  const undoAll = async () => {
    for (const undo of undos.reverse()) {
      try {
        await undo(closing);
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        logUnreleased(error);
      }
    }
  };
  try {
    const result = await allocateEach(plan, options, undos);
    if (result.outcome === 'refused') await undoAll();
    return result;
  } catch (error) {
    await undoAll();
    throw error;
  }
}

type Undos = ((ranges: ClusterRanges) => Promise<void>)[];

async function allocateEach(plan: Plan, options: PlanAllocationOptions, undos: Undos): Promise<AllocationResult> {
  const { ranges, closing: _, logUnreleased: __, ...ofService } = options;
  const from = async <Item>(
    of: (each: ClusterRanges) => RangeAllocations<Item>,
    values: readonly (Item | undefined)[],
    named: readonly Item[],
  ) => {
    const wanted = values.map((value) => (value === undefined ? 'next' : { value }));
    const given = await of(ranges).allocateFor(wanted, { ...ofService, named });
    if (given.outcome === 'allocated') undos.push((closing) => of(closing).undo(given.undo));
    return given;
  };

  const addresses: string[] = [];
  for (const address of plan.addresses) {
    const { family, value } = address;
    const named = plan.named.addresses.map(canonical);
    const given = await from((each) => each.addresses(family), [value && canonical(value)], named);
    if (isRefused(given)) return { ...given, address };
    addresses.push(...given.items);
  }
  if (plan.ports.length === 0) return { outcome: 'allocated', items: { addresses, ports: [] } };
  const values = plan.ports.map(({ value }) => value);
  const given = await from((each) => each.ports, values, plan.named.ports);
  if (given.outcome === 'allocated') return { outcome: 'allocated', items: { addresses, ports: given.items } };
  const port = plan.ports[given.index ?? -1];
  return { ...given, ...(port !== undefined && { port }) };
}

function canonical(address: string): string {
  return canonicalAddress(address) ?? address;
}
