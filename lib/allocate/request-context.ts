import { isRefused, type Refusal } from '../allocator/refusal.ts';
import { type Hold, type HoldTerms, isOver, mayClaim, termsOf, withHold } from '../range/hold.ts';
import type { Requested } from '../range/operations.ts';
import type { KeyValueTable, TableError } from '../table/key-value-table.ts';
import { readRequest } from '../table/requests.ts';
import type { OpenRange } from './open-range.ts';
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

/**
 * Returns the holds that a request for a Service may claim. They are read when the request begins, and claimed later only if
 * they have not changed. A rollback restores the claimed holds.
 */
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
  const holds = await fromEach(ranges, holdsOn);
  return isRefused(holds) ? holds : Object.fromEntries(ranges.map(({ name }, index) => [name, holds[index] ?? []]));
}

async function holdsOn({ range, values }: RequestedRange): Promise<readonly Hold[] | Refusal> {
  const named = values.flatMap((value) => value ?? []);
  const states = named.length === 0 ? [] : await range.lookUp(named);
  if (isRefused(states)) return states;
  let holds: readonly Hold[] = [];
  for (const state of states) {
    if (!isRefused(state) && state.hold) holds = withHold(holds, [state.item], termsOf(state.hold));
  }
  return holds;
}

/** Returns true if the hold belongs to another request for a Service. This Service may not exist yet. */
async function isOfAnotherService({ table, request }: RequestContext, { requestId }: HoldTerms): Promise<boolean> {
  const made = requestId === undefined ? undefined : await readRequest(table, request.cluster, requestId);
  return made?.record.takesUp !== undefined;
}
