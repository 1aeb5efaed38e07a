import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { type Hold, type HoldTerms, isOver, mayClaim, termsOf, withHold } from '../range/hold.ts';
import type { Requested } from '../range/operations.ts';
import { callerRefusal } from '../runtime/caller-keys.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { otherOwner, type RegisteredCluster, readCluster } from '../table/clusters.ts';
import type { KeyValueTable, TableError } from '../table/key-value-table.ts';
import type { RangeAllocations } from '../table/range-allocations.ts';
import { readRequest } from '../table/requests.ts';
import { type AllocateRequest, type RangeName, requestedItems } from './request.ts';

export interface RequestContext {
  readonly request: AllocateRequest;
  /** The requested ranges, sorted by name. */
  readonly ranges: readonly RequestedRange[];
  readonly table: KeyValueTable;
  readonly observeOnly: Refusal | undefined;
  /** Returns a refusal if the last repair of a requested range is too long ago. */
  readonly refusalOfUnrepaired: () => Promise<Refusal | undefined>;
  readonly nowMs: () => number;
  readonly endsAtMs: number;
  /** Reports an error that prevented the release of items. These items stay held until their hold ends. */
  readonly warn: (error: TableError) => void;
}

/** A range of a cluster. It is stored either in the table, or as IPAddresses in the cluster's API servers. */
export type OpenRange = Pick<RangeAllocations, 'allocate' | 'release' | 'heldBy' | 'lookUp'>;

export interface RequestedRange {
  readonly name: RangeName;
  readonly range: OpenRange;
  readonly values: readonly Requested[];
  /** The indexes of `values` in `requestedItems` and in the answer. */
  readonly indexes: readonly number[];
}

/** Groups the requested items by range. Returns the refusal if a range cannot be opened. */
export async function groupByRange(
  request: AllocateRequest,
  open: (name: RangeName) => Promise<OpenRange | Refusal> | OpenRange | Refusal,
): Promise<readonly RequestedRange[] | { readonly refusal: Refusal; readonly range: RangeName }> {
  const placed = requestedItems(request).map(({ range, value }, index) => ({ range, index, value: value?.toString() }));
  const ranges: RequestedRange[] = [];
  for (const [name, items] of Map.groupBy(placed, ({ range }) => range)) {
    const range = await open(name);
    if (isRefused(range)) return { refusal: range, range: name };
    ranges.push({ name, range, values: items.map(({ value }) => value), indexes: items.map(({ index }) => index) });
  }
  return ranges.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

export function inRequestOrder<Answered>(
  ranges: readonly RequestedRange[],
  answers: readonly (readonly Answered[])[],
): readonly Answered[] {
  const indexes = ranges.flatMap((range) => range.indexes);
  const ordered: Answered[] = [];
  for (const [place, answer] of answers.flat().entries()) ordered[indexes[place] ?? 0] = answer;
  return ordered;
}

export async function fromEach<Result>(
  ranges: readonly RequestedRange[],
  read: (range: RequestedRange) => Promise<Result | Refusal>,
): Promise<readonly Result[] | Refusal> {
  const results: Result[] = [];
  for (const result of await Promise.all(ranges.map(read))) {
    if (isRefused(result)) return result;
    results.push(result);
  }
  return results;
}

type HoldsByRange = Readonly<Record<string, readonly Hold[]>>;

/** Returns the holds that a request for a Service may claim unless they change first. A rollback restores claimed holds. */
export async function claimableHolds(
  context: RequestContext,
  holdOwner: string | undefined,
): Promise<HoldsByRange | Refusal> {
  const holds = await currentHolds(context);
  if (isRefused(holds)) return holds;
  const nowMs = context.nowMs();
  const claimable: Record<string, readonly Hold[]> = {};
  for (const [name, ofRange] of Object.entries(holds)) {
    const allowed = ofRange.filter((hold) => !isOver(hold, nowMs) && mayClaim(hold, holdOwner));
    const others = await Promise.all(allowed.map((hold) => isOfAnotherService(context, hold)));
    claimable[name] = allowed.filter((_, index) => others[index] === false);
  }
  return claimable;
}

/** Returns a map from the name of each range to the holds on the items that are requested by value. */
export async function currentHolds({ ranges }: RequestContext): Promise<HoldsByRange | Refusal> {
  const holds = await fromEach(ranges, async ({ name, range, values }) => {
    const named = values.flatMap((value) => value ?? []);
    const states = named.length === 0 ? [] : await range.lookUp(named);
    if (isRefused(states)) return states;
    let ofRange: readonly Hold[] = [];
    for (const state of states) {
      if (!isRefused(state) && state.hold) ofRange = withHold(ofRange, [state.item], termsOf(state.hold));
    }
    return [name, ofRange] as const;
  });
  return isRefused(holds) ? holds : Object.fromEntries(holds);
}

/** Returns true if the hold belongs to another request for a Service. This Service may not exist yet. */
async function isOfAnotherService({ table, request }: RequestContext, { requestId }: HoldTerms): Promise<boolean> {
  const made = requestId === undefined ? undefined : await readRequest(table, request.cluster, requestId);
  return made?.record.takesUp !== undefined;
}

/** Returns the cluster of a request, or a refusal if the cluster does not accept the request. @throws TableError */
export async function openRequestedCluster(
  table: KeyValueTable,
  { cluster: name, operation, callerKey }: AllocateRequest,
  stack: string | undefined,
): Promise<RegisteredCluster | Refusal> {
  const cluster = await readCluster(table, name);
  if (cluster === undefined) return refused('NotRegistered', `cluster ${name} is not registered`);
  const { spec } = cluster;
  const message = callerRefusal(spec, callerKey, stack);
  if (message !== undefined) return refused('CallerRefused', message);
  if (operation === 'lookUp') return cluster;
  const owner = otherOwner(cluster, stack);
  if (owner !== undefined) {
    const other = `cluster ${name} belongs to the stack ${owner}: invoke the allocate function of that stack`;
    return refused('OtherStack', other);
  }
  return cluster;
}

/** Returns a refusal if the mode of a cluster is `observe`. A repetition of a completed request still gets its saved answer. */
export function observeOnly({ name, mode }: ClusterSpec): Refusal | undefined {
  if (mode !== 'observe') return undefined;
  const message = `cluster ${name} has "mode: observe": nothing is allocated or released until its spec has "mode: enforce"`;
  return refused('ObserveOnly', message);
}

export function noSecondaryRange(cluster: string, range: string): Refusal {
  const message = `cluster ${cluster} has one range of cluster IPs, ${range}: it has no secondaryserviceips`;
  return refused('NoSecondaryRange', message);
}

/**
 * Returns a refusal if a cluster with `allocator: apiserver` cannot serve the request.
 * @param connects whether this process can call the API servers of the cluster
 */
export function needsTable({ cluster, items, hold, takeUp }: AllocateRequest, connects: boolean): Refusal | undefined {
  if (items.some(({ range }) => range === 'servicenodeports')) {
    return notSupported(cluster, 'no object can hold a node port, only cluster IPs can be held');
  }
  if (takeUp !== undefined || hold?.takenUpBy === 'owner') {
    return notSupported(cluster, 'no Service can claim a hold, release it right before you create the Service');
  }
  if (connects) return undefined;
  return notSupported(cluster, 'this function connects to no cluster, hold cluster IPs with "kbctl allocate ip"');
}

export function notSupported(cluster: string, why: string): Refusal {
  return refused('NotSupported', `cluster ${cluster} has "allocator: apiserver": ${why}`);
}
