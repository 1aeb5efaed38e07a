import { AllocatorError } from '../allocator/errors.ts';
import type { IPFamily } from '../allocator/ip-address.ts';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { networkOf } from '../allocator/network.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { Pick } from '../allocator/range-allocator.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import type { UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type RangeAllocations, rangeAllocations } from '../table/range-allocations.ts';
import { RANGE_KEYS } from '../table/ranges.ts';

export interface RangesOptions {
  readonly pick: Pick;
  readonly update: UpdateOptions;
}

/** The ranges of a cluster, as its spec has them now. */
export interface ClusterRanges {
  readonly addresses: (family: IPFamily) => RangeAllocations<string>;
  readonly ports: RangeAllocations<number>;
}

/** Families of a cluster's ranges, the primary first. */
export function configuredFamilies({ serviceClusterIPRanges }: ClusterSpec): readonly IPFamily[] {
  return serviceClusterIPRanges.map((cidr) => usable(networkOf(cidr)).family);
}

export function openRanges(
  table: KeyValueTable,
  { spec, rangesGeneration }: RegisteredCluster,
  { pick, update }: RangesOptions,
): ClusterRanges {
  const configured = { cluster: spec.name, allocator: spec.allocator, rangesGeneration };
  const [primary, secondary = primary] = spec.serviceClusterIPRanges;
  const [first] = configuredFamilies(spec);
  return {
    addresses: (family) => {
      const key = family === first ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
      const cidr = family === first ? primary : secondary;
      const emptyAllocator = () => usable(ipRangeOf(cidr, pick));
      return rangeAllocations(table, { ...configured, key, emptyAllocator }, update);
    },
    ports: rangeAllocations(
      table,
      {
        ...configured,
        key: RANGE_KEYS.nodePorts,
        emptyAllocator: () => usable(portRangeOf(spec.serviceNodePortRange, pick)),
      },
      update,
    ),
  };
}

/** The ranges of a spec were validated with it. */
function usable<Range>(range: Range | AllocatorError): Range {
  if (range instanceof AllocatorError) throw range;
  return range;
}
