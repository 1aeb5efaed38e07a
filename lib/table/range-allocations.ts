import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import { type RangeKey, repairLoopOf } from '../cluster/spec-ranges.ts';
import { type ConfiguredRange, openStored, refusalBeforeReading } from '../range/configured-range.ts';
import {
  type Allocated,
  type AllocateOptions,
  allocateAll,
  type Changed,
  type Released,
  type ReleaseOptions,
  type Requested,
  releaseAll,
} from '../range/operations.ts';
import type { ItemState, Range } from '../range/range.ts';
import {
  allocateForService,
  type ServiceAllocation,
  type ServiceAllocationOptions,
  type Undo,
  undoAllocation,
} from '../range/service-allocation.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import type { KeyValueTable, Item as TableItem } from './key-value-table.ts';
import { decodeRange, MOST_HOLD_BYTES, rangeContent, sizeOfHolds } from './ranges.ts';
import { lastSuccessOf } from './run-records.ts';
import type { InTurn } from './turns.ts';

export interface RangeOptions extends UpdateOptions {
  /** Whether no other writer changed the range lately: then `allocate` does not read it a second time. Default: no. */
  readonly isCalm?: () => boolean;
  /** Makes a change after those of earlier requests of this process. Default: requests of one process contend, as those of several do. */
  readonly inTurn?: InTurn;
}

export type RangeAllocations<Item> = ReturnType<typeof rangeAllocations<Item>>;

/**
 * Returns the allocator over the table (`pkg/registry/core/service/allocator/storage/storage.go`). Each operation is
 * one conditional write, all or nothing. Refusals are returned. After a thrown `TableError` the operation may have
 * happened, and must not be repeated: items without a Service are freed as leaks or when their hold ends, and released
 * items may have another owner.
 */
export function rangeAllocations<Item>(table: KeyValueTable, range: ConfiguredRange<Item>, options: RangeOptions = {}) {
  let lastRead: UpdateOptions['recent'];
  const { inTurn = (_, work) => work() } = options;
  const updateInTurn = <Result>(
    operation: Operation<Item, Result>,
    recent = (): UpdateOptions['recent'] => undefined,
  ) => inTurn(`${range.cluster}/${range.key}`, () => update(operation, recent()));
  const update = <Result>(
    operation: Operation<Item, Result>,
    recent?: UpdateOptions['recent'],
  ): Promise<Result | Refusal> => {
    const change = (current: TableItem | undefined) => {
      lastRead = { item: current };
      return changeRange(range, current, operation);
    };
    return guaranteedUpdate(table, range.cluster, range.key, change, { ...options, recent });
  };

  return {
    /**
     * Allocates every item or none. Values come first, so that no `next` takes one of them; a value that is requested
     * twice is refused as allocated. A value with an expired hold is taken until a pass has seen that no Service has
     * it.
     */
    allocate: async (
      requested: readonly Requested<Item>[],
      allocateOptions: AllocateOptions = {},
    ): Promise<Allocated<Item>> => {
      const refusal = refusalBeforeReading(range, requested);
      if (refusal !== undefined) return refusal;
      if (requested.length === 0) return { outcome: 'allocated', items: [] };
      return updateInTurn(
        (each) => {
          const allocated = allocateAll(each, requested, allocateOptions);
          return allocateOptions.hold === undefined ? allocated : withRoom(each, allocated);
        },
        () => (options.isCalm?.() ? lastRead : undefined),
      );
    },

    /**
     * Releases items with their holds. Items that were already free are in neither list; if all were, nothing is
     * written.
     */
    release: async (
      items: readonly Item[],
      { checkTime, ...releaseOptions }: ReleaseOptions & CallerTime = {},
    ): Promise<Released<Item> | Refusal> => {
      const allocator = range.emptyAllocator();
      const inRange = items.filter((item) => allocator.indexOf(item) !== undefined);
      if (inRange.length === 0) return { released: [], kept: [] };
      return updateInTurn((each) => {
        checkTime?.();
        return releaseAll(each, inRange, releaseOptions);
      });
    },

    /**
     * Allocates the items that a new or changed Service lacks, and records them as unclaimed until a pass has seen them
     * in the Service.
     */
    allocateFor: async (
      requested: readonly Requested<Item>[],
      serviceOptions: ServiceAllocationOptions<Item>,
    ): Promise<ServiceAllocation<Item>> => {
      const refusal = refusalBeforeReading(range, requested);
      if (refusal !== undefined) return refusal;
      return updateInTurn((each) => allocateForService(each, requested, serviceOptions));
    },

    /** Releases the items of a review, if no other review of that Service was answered since. Takes no turn: its time is short. */
    undo: async (undo: Undo<Item>): Promise<void> => {
      await update((each) => undoAllocation(each, undo));
    },

    heldBy: async (requestId: string): Promise<readonly Item[] | Refusal> =>
      update((each) => ({ result: each.heldBy(requestId), range: each })),

    /** Returns the state of each item at one moment, in the order of the request. */
    lookUp: async (items: readonly Item[]): Promise<readonly ItemState[] | Refusal> =>
      update((each) => ({ result: items.map((item) => each.stateOf(item)), range: each })),

    /** Returns the item in its canonical form, or that it is not in the range. Without a read. */
    itemOf: (item: Item): Item | Refusal => {
      const allocator = range.emptyAllocator();
      // An empty range does not refuse an item within it.
      return allocator.itemOf(String(item)) ?? allocator.allocate(item) ?? item;
    },
  };
}

export interface CallerTime {
  /**
   * Called right before each write.
   * @throws TableError if the caller's time is over.
   */
  readonly checkTime?: () => void;
}

type Operation<Item, Result> = (range: Range<Item>) => Changed<Item, Result>;

function changeRange<Item, Result>(
  range: ConfiguredRange<Item>,
  current: TableItem | undefined,
  operation: Operation<Item, Result>,
): Change<Result | Refusal> {
  const before = openStored(range, current && decodeRange(current));
  if (isRefused(before)) return { keep: before };
  const { result, range: after } = operation(before);
  return after === before ? { keep: result } : { write: rangeContent(after.content), result };
}

/** Refuses holds that have no room in the item of the range. */
function withRoom<Item>(
  before: Range<Item>,
  { result, range }: Changed<Item, Allocated<Item>>,
): Changed<Item, Allocated<Item>> {
  const bytes = range === before ? 0 : sizeOfHolds(range.content.holds);
  if (bytes <= MOST_HOLD_BYTES) return { result, range };
  const message = `the holds of this range would take ${bytes} bytes and have room for ${MOST_HOLD_BYTES}: release some, let some end, or hold fewer items`;
  return { result: refused('HoldsFull', message), range: before };
}

/** The age limit of the last repair of a range, in intervals of its loop. */
const INTERVALS = 3;

/**
 * Returns the reason why nothing may be allocated from ranges whose repair has not succeeded within its last three
 * intervals. After a restore the run record is old too, so allocation stays closed until a pass has read the Services.
 * @throws TableError
 */
export async function refusalOfUnrepaired(
  table: KeyValueTable,
  { name, intervalSeconds }: Pick<ClusterSpec, 'name' | 'intervalSeconds'>,
  keys: readonly RangeKey[],
  nowMs: number,
): Promise<Refusal | undefined> {
  const loops = new Set(keys.map(repairLoopOf));
  const refusals = await Promise.all(
    [...loops].map(async (loop) => {
      const lastMs = await lastSuccessOf(table, name, loop);
      const longestMs = INTERVALS * intervalSeconds[loop] * 1000;
      // A record in the future comes from a wrong clock and does not count.
      const isRecent = lastMs !== undefined && Math.abs(nowMs - lastMs) <= longestMs;
      return isRecent ? undefined : unrepaired(name, loop, lastMs);
    }),
  );
  return refusals.find((refusal) => refusal !== undefined);
}

function unrepaired(cluster: string, loop: Loop, lastMs: number | undefined): Refusal {
  const last = lastMs === undefined ? 'none is recorded' : `the last one began at ${new Date(lastMs).toISOString()}`;
  return refused(
    'NotReady',
    `no pass of ${loop} has succeeded within its last ${INTERVALS} intervals (${last}), so the table may not know all Services: wait for the next pass, or run "kbctl run-once ${loop} ${cluster}"`,
  );
}
