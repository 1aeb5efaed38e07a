import type { PickIndex, RangeAllocator } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey, rangesOf } from '../spec/spec-ranges.ts';
import { CodedError } from '../util/values.ts';
import { Range } from './range.ts';
import { emptyRange, type StoredRange } from './stored-range.ts';

export interface ConfiguredRange {
  readonly cluster: string;
  readonly key: RangeKey;
  /** The generation of the spec in which its ranges or its allocator last changed. */
  readonly rangesGeneration: number;
  readonly emptyAllocator: () => RangeAllocator;
}

/** Returns the range of the spec with this key; `undefined` if the spec has no secondary range. */
export function configuredRange(
  { spec, rangesGeneration }: { readonly spec: ClusterSpec; readonly rangesGeneration: number },
  key: RangeKey,
  pick: PickIndex,
): ConfiguredRange | undefined {
  const text = rangesOf(spec).find((range) => range.key === key)?.configured;
  if (text === undefined) return undefined;
  const emptyAllocator = () => {
    const range = emptyRange(key, text, pick);
    // A validated spec contains only ranges that parse.
    if (isRefused(range)) throw new CodedError(range.code, range.message);
    return range;
  };
  return { cluster: spec.name, key, rangesGeneration, emptyAllocator };
}

/** Returns the stored range, or a refusal if nothing may be allocated from it. */
export function openStored(range: ConfiguredRange, stored: StoredRange | undefined): Range | Refusal {
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
function notReady({ key }: ConfiguredRange): Refusal {
  const resource = key === RANGE_KEYS.nodePorts ? 'servicenodeportallocations' : 'serviceipallocations';
  return refused('NotReady', `cannot allocate resources of type ${resource} at this time`);
}
