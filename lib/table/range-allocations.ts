import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
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
import { type ItemState, Range } from '../range/range.ts';
import {
  allocateForService,
  type ServiceAllocation,
  type ServiceAllocationOptions,
  type Undo,
  undoAllocation,
} from '../range/service-allocation.ts';
import { emptyRange, type StoredRange } from '../range/stored-range.ts';
import type { ClusterSpec, Loop } from '../spec/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey, rangesOf, repairLoopOf } from '../spec/spec-ranges.ts';
import { CodedError, isoTime } from '../util/values.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import type { Item, KeyValueTable } from './key-value-table.ts';
import { decodeRange, MOST_HOLD_BYTES, rangeContent, sizeOfHolds } from './ranges.ts';
import { lastSuccessOf } from './run-records.ts';
import type { InTurn } from './turns.ts';

export interface ConfiguredRange {
  readonly cluster: string;
  readonly key: RangeKey;
  /** The `rangesGeneration` of the registration. */
  readonly rangesGeneration: number;
  /** The CIDR or port range of the spec. */
  readonly text: string;
  readonly pick: PickIndex;
}

/** Returns the range of the spec with this key; `undefined` if the spec has no secondary range. */
export function configuredRange(
  { spec, rangesGeneration }: { readonly spec: ClusterSpec; readonly rangesGeneration: number },
  key: RangeKey,
  pick: PickIndex,
): ConfiguredRange | undefined {
  const text = rangesOf(spec).find((range) => range.key === key)?.configured;
  return text === undefined ? undefined : { cluster: spec.name, key, rangesGeneration, text, pick };
}

export interface RangeOptions extends UpdateOptions {
  /** Returns true if no other writer changed the range recently. Then a change starts from the last read. Default: false. */
  readonly isCalm?: () => boolean;
  /** Runs a change after the changes of earlier requests of this process. Default: does not wait for earlier requests. */
  readonly inTurn?: InTurn;
}

type Operation<Result> = (range: Range) => Changed<Result>;

export type RangeAllocations = ReturnType<typeof rangeAllocations>;

/**
 * Returns the allocator that stores its ranges in the table (`pkg/registry/core/service/allocator/storage/storage.go`).
 * Each operation makes all of its changes with one conditional write, and returns a refusal as a value. If an operation
 * throws a `TableError`, its write may have happened, and the caller must not repeat the operation. Allocated items
 * without a Service are then freed as leaks or at the end of their hold. Released items may already have another owner.
 *
 *     const allocations = rangeAllocations(table, range);
 *     await allocations.allocate(['10.0.0.7', undefined]); // { outcome: 'allocated', items: ['10.0.0.7', '10.0.0.142'] }
 *     await allocations.release(['10.0.0.7', '10.9.9.9']); // outcomes 'released' and 'notInRange'
 */
export function rangeAllocations(table: KeyValueTable, range: ConfiguredRange, options: RangeOptions = {}) {
  let lastRead: UpdateOptions['recent'];
  const { inTurn = (_, work) => work() } = options;
  const updateInTurn = <Result>(operation: Operation<Result>) =>
    inTurn(`${range.cluster}/${range.key}`, () => update(operation, options.isCalm?.() ? lastRead : undefined));
  const update = <Result>(
    operation: Operation<Result>,
    recent?: UpdateOptions['recent'],
  ): Promise<Result | Refusal> => {
    const change = (current: Item | undefined): Change<Result | Refusal> => {
      lastRead = { item: current };
      const before = openStored(range, current && decodeRange(current));
      if (isRefused(before)) return { keep: before };
      const { result, range: after } = operation(before);
      return after === before ? { keep: result } : { write: rangeContent(after.content), result };
    };
    return guaranteedUpdate(table, range.cluster, range.key, change, { ...options, recent });
  };

  return {
    /**
     * Allocates all items or no item. Requested values are allocated first, so that `undefined` (any item) takes none of
     * them. A value that the request contains twice is refused as allocated. An item with an expired hold stays allocated
     * until a pass has seen that no Service has it.
     */
    allocate: async (requested: readonly Requested[], allocateOptions: AllocateOptions = {}): Promise<Allocated> =>
      updateInTurn((each) => {
        const allocated = allocateAll(each, requested, allocateOptions);
        return allocateOptions.hold === undefined ? allocated : withRoom(each, allocated);
      }),

    /** Releases items together with their holds. */
    release: async (items: readonly string[], releaseOptions: ReleaseOptions = {}): Promise<Released | Refusal> =>
      updateInTurn((each) => {
        releaseOptions.checkTime?.();
        return releaseAll(each, items, releaseOptions);
      }),

    /** Allocates the items that a new or changed Service lacks. They stay unclaimed until a pass has seen them in the Service. */
    allocateFor: async (
      requested: readonly Requested[],
      serviceOptions: ServiceAllocationOptions,
    ): Promise<ServiceAllocation> => updateInTurn((each) => allocateForService(each, requested, serviceOptions)),

    /** Releases the items of a review, unless a later review of the Service was answered. Does not wait for earlier requests. */
    undo: async (undo: Undo): Promise<void> => {
      await update((each) => undoAllocation(each, undo));
    },

    heldBy: async (requestId: string): Promise<readonly string[] | Refusal> =>
      update((each) => ({ result: each.heldBy(requestId), range: each })),

    /** Returns the states of all items at one moment, in the order of `items`. An item outside the range gets a refusal. */
    lookUp: async (items: readonly string[]): Promise<readonly (ItemState | Refusal)[] | Refusal> =>
      update((each) => ({ result: items.map((item) => each.stateOf(item)), range: each })),
  };
}

/** Returns the stored range, or a refusal if nothing may be allocated from it. */
function openStored(range: ConfiguredRange, stored: StoredRange | undefined): Range | Refusal {
  if (stored === undefined) return notReady(range);
  if (stored.generation > range.rangesGeneration) {
    return refused(
      'NotReady',
      `${range.key} of cluster ${range.cluster} was saved under generation ${stored.generation} of its spec, and this is generation ${range.rangesGeneration}: read the spec again`,
    );
  }
  if (stored.allocator !== 'table' || stored.generation < range.rangesGeneration) return notReady(range);
  const allocator = emptyRange(range.key, range.text, range.pick);
  // A validated spec contains only ranges that parse.
  if (isRefused(allocator)) throw new CodedError(allocator.code, allocator.message);
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

/** Refuses an allocation if its hold would make the holds of the range larger than `MOST_HOLD_BYTES`. */
function withRoom(before: Range, { result, range }: Changed<Allocated>): Changed<Allocated> {
  const bytes = range === before ? 0 : sizeOfHolds(range.content.holds);
  if (bytes <= MOST_HOLD_BYTES) return { result, range };
  const message = `the holds of this range would take ${bytes} bytes and have room for ${MOST_HOLD_BYTES}: release some, let some end, or hold fewer items`;
  return { result: refused('HoldsFull', message), range: before };
}

/** The maximum age of the last successful repair, in intervals of the repair loop. */
const INTERVALS = 3;

/**
 * Returns a refusal if the repair of a range has not succeeded within the last three intervals. After a restore of the table,
 * this prevents allocations until a pass has read the Services. @throws TableError
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
      // A record with a time in the future comes from a wrong clock and does not count.
      const isRecent = lastMs !== undefined && Math.abs(nowMs - lastMs) <= longestMs;
      return isRecent ? undefined : unrepaired(name, loop, lastMs);
    }),
  );
  return refusals.find((refusal) => refusal !== undefined);
}

function unrepaired(cluster: string, loop: Loop, lastMs: number | undefined): Refusal {
  const last = lastMs === undefined ? 'none is recorded' : `the last one began at ${isoTime(lastMs)}`;
  return refused(
    'NotReady',
    `no pass of ${loop} has succeeded within its last ${INTERVALS} intervals (${last}), so the table may not know all Services: wait for the next pass, or run "kbctl run-once ${loop} ${cluster}"`,
  );
}
