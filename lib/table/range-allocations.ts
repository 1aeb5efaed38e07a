import { AllocatorError, rangeIsFull } from '../allocator/errors.ts';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { Pick as PickIndex, RangeAllocator } from '../allocator/range-allocator.ts';
import type { AllocatorOfRecord } from '../cluster/cluster-spec.ts';
import { badHold, type HoldTerms } from '../cluster/hold.ts';
import { RANGE_KEYS, type RangeKey, rangesOf } from '../cluster/spec-ranges.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import type { RegisteredCluster } from './clusters.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import type { KeyValueTable, Item as TableItem } from './key-value-table.ts';
import { type LookedUp, RangeDraft } from './range-draft.ts';
import { type GivenItems, type GiveOptions, giveAll, takeBack, type Undo } from './range-giving.ts';
import {
  type GiveBackOptions,
  type Given,
  type Held,
  holdAll,
  itemsHeldBy,
  type Refused,
  releaseAll,
  type Taken,
  type TakeOptions,
  takeAll,
  type Wanted,
} from './range-operations.ts';
import { decodeRange, rangeContent } from './ranges.ts';

/**
 * The allocator over the table (`pkg/registry/core/service/allocator/storage/storage.go`). Each operation is one
 * conditional write, all or nothing. Refusals are returned; what is thrown is a `TableError`, after which nobody can
 * tell whether the operation happened. It is then not to be run again: what was allocated for nobody is freed as a leak
 * or when its hold is over, and what was released may be somebody else's.
 */
export interface RangeAllocations<Item> {
  allocate(item: Item): Promise<AllocatorError | undefined>;
  allocateNext(): Promise<{ readonly item: Item } | AllocatorError>;
  /** With its hold. Releasing what is free, or not in the range, writes nothing. */
  release(item: Item): Promise<AllocatorError | undefined>;
  /**
   * Takes every one or none. Values come first, so that no `next` takes one of them; a value that is asked for twice is
   * refused as allocated. A value whose hold is over is still taken, until a pass has seen that no Service has it.
   */
  take(wanted: readonly Wanted<Item>[], options?: TakeOptions): Promise<Taken<Item>>;
  /** Releases items with their holds. What was free before is neither released nor kept. */
  giveBack(items: readonly Item[], options?: GiveBackOptions): Promise<Given<Item> | AllocatorError>;
  /** Gives a new or changed Service what it lacks, and remembers it until a pass has seen it in the Service. */
  give(wanted: readonly Wanted<Item>[], options: GiveOptions<Item>): Promise<GivenItems<Item>>;
  /** Releases what a review was given, if no other review of that Service was answered since. */
  takeBack(undo: Undo<Item>): Promise<void>;
  /** What is held under this request. */
  heldBy(requestId: string): Promise<readonly Item[] | AllocatorError>;
  lookUp(item: Item): Promise<LookedUp | AllocatorError>;
  /** All at one moment, in the order asked. */
  lookUpEach(items: readonly Item[]): Promise<readonly LookedUp[] | AllocatorError>;
  /** Changes the terms of items that the same owner holds. They stay with the request that took them. */
  hold(items: readonly Item[], terms: Omit<HoldTerms, 'requestId'>): Promise<Held>;
}

export function rangeAllocations<Item>(
  table: KeyValueTable,
  range: ConfiguredRange<Item>,
  options?: UpdateOptions,
): RangeAllocations<Item> {
  const update = <Result>(operation: Operation<Item, Result>): Promise<Result | AllocatorError> =>
    guaranteedUpdate(table, range.cluster, range.key, (current) => changeRange(range, current, operation), options);

  const take = async (wanted: readonly Wanted<Item>[], takeOptions: TakeOptions = {}): Promise<Taken<Item>> => {
    const values = wanted.map((each) => (each === 'next' ? undefined : each.value));
    const { hold } = takeOptions;
    const refusal = refusedWithout(range, hold, values);
    if (refusal !== undefined) return refusal;
    if (wanted.length === 0) return { outcome: 'taken', items: [] };
    return asRefused(await update((draft) => takeAll(draft, wanted, takeOptions)));
  };

  const giveBack: RangeAllocations<Item>['giveBack'] = async (items, giveBackOptions = {}) => {
    const refusal = refusalOfMode(range);
    if (refusal !== undefined) return refusal;
    const allocator = range.emptyAllocator();
    const inRange = items.filter((item) => allocator.indexOf(item) !== undefined);
    if (inRange.length === 0) return { released: [], kept: [] };
    return update((draft) => releaseAll(draft, inRange, giveBackOptions));
  };

  return {
    take,
    giveBack,

    give: async (wanted, giveOptions) => {
      const values = wanted.map((each) => (each === 'next' ? undefined : each.value));
      const refusal = refusedWithout(range, undefined, values);
      if (refusal !== undefined) return refusal;
      return asRefused(await update((draft) => giveAll(draft, wanted, giveOptions)));
    },

    takeBack: async (undo) => {
      await update((draft) => takeBack(draft, undo));
    },

    allocate: async (item) => {
      const taken = await take([{ value: item }]);
      return taken.outcome === 'refused' ? taken.error : undefined;
    },

    allocateNext: async () => {
      const taken = await take(['next']);
      if (taken.outcome === 'refused') return taken.error;
      const [item] = taken.items;
      return item === undefined ? rangeIsFull() : { item };
    },

    release: async (item) => {
      const given = await giveBack([item]);
      return given instanceof AllocatorError ? given : undefined;
    },

    heldBy: async (requestId) => refusalOfMode(range) ?? update((draft) => itemsHeldBy(draft, requestId)),

    lookUp: async (item) => refusalOfMode(range) ?? update((draft) => draft.lookUp(item)),

    lookUpEach: async (items) => refusalOfMode(range) ?? update((draft) => items.map((item) => draft.lookUp(item))),

    hold: async (items, terms) => {
      const refusal = refusedWithout(range, terms, items);
      if (refusal !== undefined) return refusal;
      if (items.length === 0) return { outcome: 'held' };
      return asRefused(await update((draft) => holdAll(draft, items, terms)));
    },
  };
}

type Operation<Item, Result> = (draft: RangeDraft<Item>) => Result;

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
  const draft = new RangeDraft(stored, allocator);
  const result = operation(draft);
  const { changed } = draft;
  return changed === undefined || isRefused(result) ? { keep: result } : { write: rangeContent(changed), result };
}

function isRefused(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'outcome' in result && result.outcome === 'refused';
}

/** What is refused before the table is asked. */
function refusedWithout<Item>(
  range: ConfiguredRange<Item>,
  hold: HoldTerms | undefined,
  items: readonly (Item | undefined)[],
): Refused | undefined {
  const refusal = refusalOfMode(range) ?? (hold && badHold(hold));
  if (refusal !== undefined) return { outcome: 'refused', error: refusal };
  const outside = refusalOfItems(range, items);
  return outside && { outcome: 'refused', ...outside };
}

function asRefused<Result>(result: Result | AllocatorError): Result | Refused {
  return result instanceof AllocatorError ? { outcome: 'refused', error: result } : result;
}

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

type OfCluster = Pick<RegisteredCluster, 'spec' | 'rangesGeneration'>;

/** Returns a range of cluster IPs as the spec has it now; `undefined` for a secondary one that it does not have. */
export function addressRange(
  { spec, rangesGeneration }: OfCluster,
  key: Exclude<RangeKey, typeof RANGE_KEYS.nodePorts>,
  pick: PickIndex,
): ConfiguredRange<string> | undefined {
  const { name: cluster, allocator } = spec;
  const cidr = rangesOf(spec).find((range) => range.key === key)?.configured;
  if (cidr === undefined) return undefined;
  return { cluster, key, allocator, rangesGeneration, emptyAllocator: () => valid(ipRangeOf(cidr, pick)) };
}

/** Returns the node ports as the spec has them now. */
export function nodePortRange({ spec, rangesGeneration }: OfCluster, pick: PickIndex): ConfiguredRange<number> {
  const { name: cluster, allocator, serviceNodePortRange: ports } = spec;
  const emptyAllocator = () => valid(portRangeOf(ports, pick));
  return { cluster, key: RANGE_KEYS.nodePorts, allocator, rangesGeneration, emptyAllocator };
}

/** The ranges of a spec were validated with it. */
function valid<Range>(range: Range | AllocatorError): Range {
  if (range instanceof AllocatorError) throw range;
  return range;
}

/** Nothing is allocated here where the cluster's own API servers do. */
function refusalOfMode({ allocator, cluster }: ConfiguredRange<unknown>): AllocatorError | undefined {
  if (allocator === 'table') return undefined;
  return new AllocatorError(
    'NotReady',
    `cluster ${cluster} has "allocator: apiserver": its own API servers allocate and release, not this table`,
  );
}

/** What is not in the range is refused before the table is asked. `undefined` in the list is passed over. */
function refusalOfItems<Item>(
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
