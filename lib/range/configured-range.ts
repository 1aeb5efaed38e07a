import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { PickIndex, RangeAllocator } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey, rangesOf } from '../cluster/spec-ranges.ts';
import { CodedError } from '../cluster/values.ts';
import type { Requested } from './operations.ts';
import { Range } from './range.ts';
import type { StoredRange } from './stored-range.ts';

export interface ConfiguredRange<Item> {
  readonly cluster: string;
  readonly key: RangeKey;
  /** The generation of the spec in which its ranges or its allocator last changed. */
  readonly rangesGeneration: number;
  readonly emptyAllocator: () => RangeAllocator<Item>;
}

interface OfCluster {
  readonly spec: ClusterSpec;
  readonly rangesGeneration: number;
}

/** Returns a range of cluster IPs of the spec; `undefined` for a secondary range if the spec has none. */
export function addressRange(
  { spec, rangesGeneration }: OfCluster,
  key: Exclude<RangeKey, typeof RANGE_KEYS.nodePorts>,
  pick: PickIndex,
): ConfiguredRange<string> | undefined {
  const { name: cluster } = spec;
  const cidr = rangesOf(spec).find((range) => range.key === key)?.configured;
  if (cidr === undefined) return undefined;
  return { cluster, key, rangesGeneration, emptyAllocator: () => valid(ipRangeOf(cidr, pick)) };
}

export function nodePortRange({ spec, rangesGeneration }: OfCluster, pick: PickIndex): ConfiguredRange<number> {
  const { name: cluster, serviceNodePortRange: ports } = spec;
  const emptyAllocator = () => valid(portRangeOf(ports, pick));
  return { cluster, key: RANGE_KEYS.nodePorts, rangesGeneration, emptyAllocator };
}

/** Returns the range. Throws for a refusal, which cannot happen: a validated spec contains only ranges that parse. */
function valid<Range>(range: Range | Refusal): Range {
  if (isRefused(range)) throw new CodedError(range.code, range.message);
  return range;
}

/** Returns the stored range, or a refusal if nothing may be allocated from it. */
export function openStored<Item>(range: ConfiguredRange<Item>, stored: StoredRange | undefined): Range<Item> | Refusal {
  if (stored === undefined) return notReady(range);
  if (stored.generation > range.rangesGeneration) {
    return refused(
      'NotReady',
      `${range.key} of cluster ${range.cluster} was saved under generation ${stored.generation} of its spec, and this is generation ${range.rangesGeneration}: read the spec again`,
    );
  }
  if (stored.allocator !== 'table' || stored.generation < range.rangesGeneration) return notReady(range);
  const allocator = range.emptyAllocator();
  if (stored.range !== allocator.spec) {
    return refused('MismatchedRange', 'the provided range does not match the current range');
  }
  allocator.restore(stored.data);
  return new Range(stored, allocator);
}

/** Returns upstream's refusal for a range that no pass has saved in this generation. */
function notReady({ key }: ConfiguredRange<unknown>): Refusal {
  const resource = key === RANGE_KEYS.nodePorts ? 'servicenodeportallocations' : 'serviceipallocations';
  return refused('NotReady', `cannot allocate resources of type ${resource} at this time`);
}

/** Returns a refusal if an item is outside the range. Does not read the table. */
export function refusalBeforeReading<Item>(
  range: ConfiguredRange<Item>,
  requested: readonly Requested<Item>[],
): Refusal | undefined {
  const allocator = range.emptyAllocator();
  for (const [index, value] of requested.entries()) {
    const outside = value === undefined ? undefined : allocator.refusalIfOutside(value);
    if (outside !== undefined) return { ...outside, index };
  }
  return undefined;
}
