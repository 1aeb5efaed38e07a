import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { Pick as PickItem, RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/table/ranges.ts';
import type { ServiceAllocation, Taken } from './service-storage.ts';

export interface TableAllocationOptions {
  readonly table: KeyValueTable;
  readonly cluster: string;
  readonly serviceClusterIPRanges: readonly string[];
  readonly serviceNodePortRange: string;
  /** Asked each time: an import closes allocation, and a pass of the new generation opens it. */
  readonly rangesGeneration: () => number | Promise<number>;
  readonly pick: PickItem;
  /** Default: this machine's. */
  readonly nowMs?: () => number;
}

/** What an API server without etcd does: it takes its Services' addresses and ports from the table. */
export function tableAllocation(options: TableAllocationOptions): ServiceAllocation {
  const { pick, nowMs = Date.now } = options;
  const over = <Item>(key: RangeKey, emptyAllocator: () => RangeAllocator<Item>) => {
    const allocations = () => allocationsOver(options, key, emptyAllocator);
    return {
      take: async (item: Item | undefined, holdOwner?: string) => {
        const range = await allocations();
        if (item === undefined) return taken(await range.allocateNext());
        const takeUp = { nowMs: nowMs(), ...(holdOwner !== undefined && { holdOwner }) };
        const result = await range.take([{ value: item }], { takeUp });
        return taken(result.outcome === 'refused' ? result.error : { item: result.items[0] ?? item });
      },
      giveBack: async (item: Item) => refused(await (await allocations()).release(item)),
    };
  };

  const addresses = options.serviceClusterIPRanges.map((cidr, index) => ({
    family: usable(ipRangeOf(cidr, pick)).family,
    ...over<string>(index === 0 ? RANGE_KEYS.primary : RANGE_KEYS.secondary, () => usable(ipRangeOf(cidr, pick))),
  }));
  const ports = over<number>(RANGE_KEYS.nodePorts, () => usable(portRangeOf(options.serviceNodePortRange, pick)));
  return {
    families: addresses.map(({ family }) => family),
    takeAddress: async (family, address, holdOwner) => {
      const range = addresses.find((candidate) => candidate.family === family);
      return range?.take(address, holdOwner) ?? { refusal: 'refused', message: `this cluster has no ${family} range` };
    },
    takePort: ports.take,
    giveBackAddress: async (address) => {
      const family = address.includes(':') ? 'IPv6' : 'IPv4';
      await addresses.find((candidate) => candidate.family === family)?.giveBack(address);
    },
    giveBackPort: ports.giveBack,
  };
}

/** The primary range, for whoever takes an address without a Service. */
export function primaryAddresses(options: TableAllocationOptions): Pick<RangeAllocations<string>, 'take'> {
  const [primary = ''] = options.serviceClusterIPRanges;
  const range = () => allocationsOver(options, RANGE_KEYS.primary, () => usable(ipRangeOf(primary, options.pick)));
  return { take: async (wanted, takeOptions) => (await range()).take(wanted, takeOptions) };
}

async function allocationsOver<Item>(
  { table, cluster, rangesGeneration }: TableAllocationOptions,
  key: RangeKey,
  emptyAllocator: () => RangeAllocator<Item>,
): Promise<RangeAllocations<Item>> {
  const range = { cluster, key, rangesGeneration: await rangesGeneration(), emptyAllocator };
  return rangeAllocations(table, { ...range, allocator: 'table' });
}

function taken<Item>(result: { readonly item: Item } | AllocatorError): Taken<Item> {
  if (!(result instanceof AllocatorError)) return result;
  const isFull = result.code === 'Full' || result.code === 'NotReady';
  return { refusal: isFull ? 'full' : 'refused', message: result.message };
}

function refused(error: AllocatorError | undefined): void {
  if (error !== undefined) throw error;
}

function usable<Range>(range: Range | AllocatorError): Range {
  if (range instanceof AllocatorError) throw range;
  return range;
}
