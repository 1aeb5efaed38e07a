import { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { AllocatorOfRecord } from '../cluster/cluster-spec.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import { RANGE_KEYS, type RangeKey } from './ranges.ts';

/** One range of one cluster, as its spec has it now. */
export interface ConfiguredRange<Item> {
  readonly cluster: string;
  readonly key: RangeKey;
  /** The spec's: with `apiserver` nothing is allocated here. */
  readonly allocator: AllocatorOfRecord;
  /** The spec generation at which ranges or allocator last changed. */
  readonly rangesGeneration: number;
  /** An empty allocator for the configured range. */
  readonly emptyAllocator: () => RangeAllocator<Item>;
}

/** Nothing is allocated here where the cluster's own API servers do. */
export function refusalOfMode({ allocator, cluster }: ConfiguredRange<unknown>): AllocatorError | undefined {
  if (allocator === 'table') return undefined;
  return new AllocatorError(
    'NotReady',
    `cluster ${cluster} has "allocator: apiserver": its own API servers allocate and release, not this table`,
  );
}

/** What is not in the range is refused before the table is asked. `undefined` in the list is passed over. */
export function refusalOfItems<Item>(
  { emptyAllocator }: ConfiguredRange<Item>,
  items: readonly (Item | undefined)[],
): { readonly index: number; readonly error: AllocatorError } | undefined {
  const allocator = emptyAllocator();
  for (const [index, item] of items.entries()) {
    if (item === undefined || allocator.indexOf(item) !== undefined) continue;
    const error = allocator.allocate(item);
    if (error !== undefined) return { index, error };
  }
  return undefined;
}

/** `configuredText` is the canonical text of the range that the spec has now. */
export function refusalOfStored(
  range: ConfiguredRange<unknown>,
  stored: StoredRange,
  configuredText: string,
): AllocatorError | undefined {
  if (stored.generation > range.rangesGeneration) {
    return new AllocatorError(
      'NotReady',
      `${range.key} of cluster ${range.cluster} was saved under generation ${stored.generation} of its spec, and this is generation ${range.rangesGeneration}: read the spec again`,
    );
  }
  if (stored.allocator !== 'table' || stored.generation < range.rangesGeneration) return notReady(range);
  if (stored.range === configuredText) return undefined;
  return new AllocatorError('MismatchedRange', 'the provided range does not match the current range');
}

/** To the letter the original's, until a pass has saved the range under this generation. */
export function notReady({ key }: ConfiguredRange<unknown>): AllocatorError {
  const resource = key === RANGE_KEYS.nodePorts ? 'servicenodeportallocations' : 'serviceipallocations';
  return new AllocatorError('NotReady', `cannot allocate resources of type ${resource} at this time`);
}
