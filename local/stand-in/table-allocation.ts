import type { PickIndex } from '../../lib/allocator/range-allocator.ts';
import { isRefused, refused } from '../../lib/allocator/refusal.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { configuredRange, rangeAllocations, refusalOfUnrepaired } from '../../lib/table/range-allocations.ts';
import type { ItemAllocator, ServiceAllocator } from './service-storage.ts';

/**
 * Allocates from the table, and only from a range whose repair has succeeded within the last three intervals. Reads the
 * registration for each allocation, because a change of the ranges closes allocation until a pass has saved the ranges.
 */
export function tableAllocation(
  table: KeyValueTable,
  cluster: string,
  pick: PickIndex,
  nowMs: () => number,
): ServiceAllocator {
  const over = (key: RangeKey): ItemAllocator => {
    const open = async () => {
      const registered = await readCluster(table, cluster);
      const range = registered && configuredRange(registered, key, pick);
      return range && { spec: registered.spec, ...rangeAllocations(table, range) };
    };
    return {
      allocate: async (item, holdOwner) => {
        const range = await open();
        if (range === undefined) return refused('NotReady', `cluster ${cluster} is not registered`);
        const unrepaired = await refusalOfUnrepaired(table, range.spec, [key], nowMs());
        if (unrepaired !== undefined) return unrepaired;
        const claim = { nowMs, holdOwner };
        const result = await range.allocate([item], { claim });
        return isRefused(result) ? result : { item: result.items[0] ?? '' };
      },
      release: async (item) => {
        const result = await (await open())?.release([item]);
        if (isRefused(result)) throw new Error(result.message);
      },
    };
  };
  return { addresses: over(RANGE_KEYS.primary), ports: over(RANGE_KEYS.nodePorts) };
}
