import type { Pick as PickItem } from '../../lib/allocator/bitmap.ts';
import { AllocatorError, rangeIsFull } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { networkOf } from '../../lib/allocator/network.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../../lib/table/range-allocations.ts';
import type { Released } from '../../lib/table/range-operations.ts';
import { refusalOfUnrepaired } from '../../lib/table/run-records.ts';
import type { Allocated, ServiceAllocation } from './service-storage.ts';

export interface TableAllocationOptions {
  readonly table: KeyValueTable;
  readonly cluster: string;
  readonly serviceClusterIPRanges: readonly string[];
  readonly serviceNodePortRange: string;
  readonly pick: PickItem;
  /** Default: this machine's. */
  readonly nowMs?: () => number;
}

/**
 * What an API server without etcd does: it takes its Services' addresses and ports from the table, and like requests and the
 * webhook only from a range whose repair has succeeded within its last three intervals.
 */
export function tableAllocation(options: TableAllocationOptions): ServiceAllocation {
  const { pick, nowMs = Date.now } = options;
  const over = <Item>(key: RangeKey, emptyAllocator: () => RangeAllocator<Item>) => {
    const allocations = () => allocationsOver(options, key, emptyAllocator);
    return {
      take: async (item: Item | undefined, holdOwner?: string) => {
        const range = await allocations();
        const claim = { nowMs: nowMs(), ...(holdOwner !== undefined && { holdOwner }) };
        const result = await range.allocate([item === undefined ? 'next' : { value: item }], { claim });
        if (result.outcome === 'refused') return taken<Item>(result.error);
        const allocated = result.items[0] ?? item;
        return taken(allocated === undefined ? rangeIsFull() : { item: allocated });
      },
      release: async (item: Item) => refused(await (await allocations()).release([item])),
    };
  };

  const addresses = options.serviceClusterIPRanges.map((cidr, index) => ({
    family: usable(networkOf(cidr)).family,
    ...over<string>(index === 0 ? RANGE_KEYS.primary : RANGE_KEYS.secondary, () => usable(ipRangeOf(cidr, pick))),
  }));
  const ports = over<number>(RANGE_KEYS.nodePorts, () => usable(portRangeOf(options.serviceNodePortRange, pick)));
  return {
    families: addresses.map(({ family }) => family),
    allocateAddress: async (family, address, holdOwner) => {
      const range = addresses.find((candidate) => candidate.family === family);
      return range?.take(address, holdOwner) ?? { refusal: 'refused', message: `this cluster has no ${family} range` };
    },
    allocatePort: ports.take,
    releaseAddress: async (address) => {
      const family = address.includes(':') ? 'IPv6' : 'IPv4';
      await addresses.find((candidate) => candidate.family === family)?.release(address);
    },
    releasePort: ports.release,
  };
}

/** The primary range, for an address without a Service. */
export function primaryAddresses(options: TableAllocationOptions): Pick<RangeAllocations<string>, 'allocate'> {
  const [primary = ''] = options.serviceClusterIPRanges;
  const range = () => allocationsOver(options, RANGE_KEYS.primary, () => usable(ipRangeOf(primary, options.pick)));
  return { allocate: async (requested, options) => (await range()).allocate(requested, options) };
}

/** The registration is read each time: an import closes allocation, and a pass of the new generation opens it. */
async function allocationsOver<Item>(
  { table, cluster, nowMs = Date.now }: TableAllocationOptions,
  key: RangeKey,
  emptyAllocator: () => RangeAllocator<Item>,
): Promise<Pick<RangeAllocations<Item>, 'allocate' | 'release'>> {
  const registered = await readCluster(table, cluster);
  const range = { cluster, key, rangesGeneration: registered?.rangesGeneration ?? 1, emptyAllocator };
  const { allocate, release } = rangeAllocations(table, { ...range, allocator: 'table' });
  const refusal = async () =>
    registered === undefined
      ? new AllocatorError('NotReady', `cluster ${cluster} is not registered`)
      : refusalOfUnrepaired(table, registered.spec, [key], nowMs());
  return {
    release,
    allocate: async (requested, options) => {
      const error = await refusal();
      return error === undefined ? allocate(requested, options) : { outcome: 'refused', error };
    },
  };
}

function taken<Item>(result: { readonly item: Item } | AllocatorError): Allocated<Item> {
  if (!(result instanceof AllocatorError)) return result;
  const isFull = result.code === 'Full' || result.code === 'NotReady';
  return { refusal: isFull ? 'full' : 'refused', message: result.message };
}

function refused(result: Released<unknown> | AllocatorError): void {
  if (result instanceof AllocatorError) throw result;
}

function usable<Range>(range: Range | AllocatorError): Range {
  if (range instanceof AllocatorError) throw range;
  return range;
}
