import { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator, StoredRange } from '../allocator/range-allocator.ts';
import { withoutBit } from '../allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../cluster/cluster-spec.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import type { KeyValueTable, Item as TableItem } from './key-value-table.ts';
import { decodeRange, RANGE_KEYS, type RangeKey, rangeContent } from './ranges.ts';

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

/**
 * The allocator over the table (`pkg/registry/core/service/allocator/storage/storage.go`). Refusals are returned; what
 * is thrown is a `TableError`, after which nobody can tell whether the allocation or release happened. It is then not
 * to be run again: what was allocated for nobody is freed as a leak, and what was released may be somebody else's.
 */
export interface RangeAllocations<Item> {
  allocate(item: Item): Promise<AllocatorError | undefined>;
  allocateNext(): Promise<{ readonly item: Item } | AllocatorError>;
  /** Releasing what is free, or not in the range, writes nothing. */
  release(item: Item): Promise<AllocatorError | undefined>;
}

export function rangeAllocations<Item>(
  table: KeyValueTable,
  range: ConfiguredRange<Item>,
  options?: UpdateOptions,
): RangeAllocations<Item> {
  const update = <Result>(operation: Operation<Item, Result>): Promise<Result | AllocatorError> =>
    guaranteedUpdate(table, range.cluster, range.key, (current) => changeRange(range, current, operation), options);

  return {
    allocate: async (item) => {
      const refusal = refusalOfMode(range) ?? refusalOfItem(range, item);
      if (refusal !== undefined) return refusal;
      return update((allocator) => {
        const refused = allocator.allocate(item);
        return refused === undefined ? { result: undefined, touched: item } : { result: refused };
      });
    },

    allocateNext: async () => {
      const refusal = refusalOfMode(range);
      if (refusal !== undefined) return refusal;
      return update<{ readonly item: Item } | AllocatorError>((allocator) => {
        const next = allocator.allocateNext();
        return next instanceof AllocatorError ? { result: next } : { result: next, touched: next.item };
      });
    },

    release: async (item) => {
      const refusal = refusalOfMode(range);
      if (refusal !== undefined || refusalOfItem(range, item) !== undefined) return refusal;
      return update((allocator) => {
        if (!allocator.has(item)) return { result: undefined };
        allocator.release(item);
        return { result: undefined, touched: item };
      });
    },
  };
}

/** Changes the allocator; `touched` is the item that was taken or given back, absent when nothing was changed. */
type Operation<Item, Result> = (allocator: RangeAllocator<Item>) => {
  readonly result: Result;
  readonly touched?: Item;
};

function changeRange<Item, Result>(
  range: ConfiguredRange<Item>,
  current: TableItem | undefined,
  operation: Operation<Item, Result>,
): Change<Result | AllocatorError> {
  if (current === undefined) return { keep: notReady(range) };
  const stored = decodeRange(current);
  const allocator = range.emptyAllocator();
  const refusal = refusalOfStored(range, stored, allocator.spec) ?? allocator.restore(stored);
  if (refusal !== undefined) return { keep: refusal };
  const { result, touched } = operation(allocator);
  if (touched === undefined) return { keep: result };
  const { data } = allocator.snapshot();
  return { write: rangeContent(withoutStrikes({ ...stored, data }, allocator.indexOf(touched))), result };
}

/** Strikes belong to one allocation: the next owner of an address starts without any. */
function withoutStrikes(stored: StoredRange, bit: number | undefined): StoredRange {
  if (bit === undefined) return stored;
  const { once, twice } = stored.strikes;
  return { ...stored, strikes: { ...stored.strikes, once: withoutBit(once, bit), twice: withoutBit(twice, bit) } };
}

function refusalOfMode({ allocator, cluster }: ConfiguredRange<unknown>): AllocatorError | undefined {
  if (allocator === 'table') return undefined;
  return new AllocatorError(
    'NotReady',
    `cluster ${cluster} has "allocator: apiserver": its own API servers allocate and release, not this table`,
  );
}

/** What is not in the range is refused before the table is asked. */
function refusalOfItem<Item>({ emptyAllocator }: ConfiguredRange<Item>, item: Item): AllocatorError | undefined {
  const allocator = emptyAllocator();
  return allocator.indexOf(item) === undefined ? allocator.allocate(item) : undefined;
}

function refusalOfStored(
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
function notReady({ key }: ConfiguredRange<unknown>): AllocatorError {
  const resource = key === RANGE_KEYS.nodePorts ? 'servicenodeportallocations' : 'serviceipallocations';
  return new AllocatorError('NotReady', `cannot allocate resources of type ${resource} at this time`);
}
