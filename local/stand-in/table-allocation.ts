import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { Pick, RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { rangeAllocations } from '../../lib/table/range-allocations.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/table/ranges.ts';
import type { ServiceAllocation, Taken } from './service-storage.ts';

export interface TableAllocationOptions {
  readonly table: KeyValueTable;
  readonly cluster: string;
  readonly serviceClusterIPRanges: readonly string[];
  readonly serviceNodePortRange: string;
  readonly rangesGeneration: () => number;
  readonly pick: Pick;
}

/** What an API server without etcd does: it takes its Services' addresses and ports from the table. */
export function tableAllocation(options: TableAllocationOptions): ServiceAllocation {
  const { table, cluster, pick, rangesGeneration } = options;
  const over = <Item>(key: RangeKey, emptyAllocator: () => RangeAllocator<Item>) => {
    const allocations = () =>
      rangeAllocations(table, {
        cluster,
        key,
        allocator: 'table',
        rangesGeneration: rangesGeneration(),
        emptyAllocator,
      });
    return {
      take: async (item: Item | undefined) => {
        if (item === undefined) return taken(await allocations().allocateNext());
        return taken((await allocations().allocate(item)) ?? { item });
      },
      giveBack: async (item: Item) => refused(await allocations().release(item)),
    };
  };

  const addresses = options.serviceClusterIPRanges.map((cidr, index) => ({
    family: usable(ipRangeOf(cidr, pick)).family,
    ...over<string>(index === 0 ? RANGE_KEYS.primary : RANGE_KEYS.secondary, () => usable(ipRangeOf(cidr, pick))),
  }));
  const ports = over<number>(RANGE_KEYS.nodePorts, () => usable(portRangeOf(options.serviceNodePortRange, pick)));
  return {
    families: addresses.map(({ family }) => family),
    takeAddress: async (family, address) => {
      const range = addresses.find((candidate) => candidate.family === family);
      return range?.take(address) ?? { refusal: 'refused', message: `this cluster has no ${family} range` };
    },
    takePort: ports.take,
    giveBackAddress: async (address) => {
      const family = address.includes(':') ? 'IPv6' : 'IPv4';
      await addresses.find((candidate) => candidate.family === family)?.giveBack(address);
    },
    giveBackPort: ports.giveBack,
  };
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
