import { AllocatorError } from '../allocator/errors.ts';
import { type Hold, type HoldTerms, isOver, mayTakeUp, termsOf, withHold } from '../cluster/hold.ts';
import type { TableError } from '../table/errors.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import type { TakeUp } from '../table/range-operations.ts';
import { type RequestRecord, readRequest } from '../table/requests.ts';
import type { Refusal } from './answer.ts';
import type { OpenRange } from './open-range.ts';
import type { AllocateRequest, ItemValue, RangeName, WantedItem } from './request.ts';

/** One request with what it needs. */
export interface Job {
  readonly request: AllocateRequest;
  readonly wanted: readonly WantedItem[];
  /** One after the other, always in the same order. */
  readonly ranges: readonly WantedRange[];
  readonly table: KeyValueTable;
  /** Why nothing is allocated now, as the last repair of a range is too long ago. */
  readonly refusalOfUnrepaired: () => Promise<AllocatorError | undefined>;
  readonly nowMs: () => number;
  /** The end of this invocation's time. */
  readonly endsAtMs: number;
  /** Takes what could not be given back after the answer was settled: it stays until its hold ends. */
  readonly tell: (error: TableError) => void;
}

/** A range with what is wanted of it. */
export interface WantedRange {
  readonly name: RangeName;
  readonly range: OpenRange;
  readonly wanted: readonly PlacedItem[];
}

export interface PlacedItem {
  /** Its place in the request and in the answer. */
  readonly index: number;
  readonly value: ItemValue | undefined;
}

/** Groups what is wanted by range. The refusal of a range that the cluster has not comes with the items it is about. */
export function wantedRanges(
  wanted: readonly WantedItem[],
  open: (name: RangeName) => OpenRange | Refusal,
): readonly WantedRange[] | { readonly refusal: Refusal; readonly range: RangeName } {
  const placed = wanted.map(({ range, value }, index) => ({ range, index, value }));
  const ranges: WantedRange[] = [];
  for (const [name, items] of Map.groupBy(placed, ({ range }) => range)) {
    const range = open(name);
    if ('code' in range) return { refusal: range, range: name };
    ranges.push({ name, range, wanted: items.map(({ index, value }) => ({ index, value })) });
  }
  return ranges.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** What each of the ranges says, or the first refusal. */
export async function askEach<Said>(
  ranges: readonly WantedRange[],
  ask: (range: WantedRange) => Promise<Said | AllocatorError>,
): Promise<readonly Said[] | AllocatorError> {
  const said = await Promise.all(ranges.map(ask));
  const answers: Said[] = [];
  for (const each of said) {
    if (each instanceof Error) return each;
    answers.push(each);
  }
  return answers;
}

/**
 * The holds that a request for a Service may take up, as they are before it begins. They are taken up only as they are
 * here, and are so again when it is rolled back.
 */
export async function holdsToTakeUp(
  job: Job,
  holdOwner: string | undefined,
): Promise<NonNullable<RequestRecord['takesUp']> | AllocatorError> {
  const byRange: Record<string, readonly Hold[]> = {};
  for (const each of job.ranges) {
    const holds = await holdsOn(each);
    if (holds instanceof AllocatorError) return holds;
    const nowMs = job.nowMs();
    const allowed = holds.filter((hold) => !isOver(hold, nowMs) && mayTakeUp(hold, holdOwner));
    const others = await Promise.all(allowed.map((hold) => isOfAnotherService(job, hold)));
    byRange[each.name] = allowed.filter((_, index) => others[index] === false);
  }
  return byRange;
}

/** As ranges take it: only what is held as it was. */
export function takeUpNow(
  { takeUp }: Pick<AllocateRequest, 'takeUp'>,
  nowMs: number,
  from: readonly Hold[] = [],
): { readonly takeUp?: TakeUp } {
  if (takeUp === undefined) return {};
  const { holdOwner } = takeUp;
  return { takeUp: { nowMs, from, ...(holdOwner !== undefined && { holdOwner }) } };
}

/** The holds on what is wanted by its value. */
export async function holdsOn({ range, wanted }: WantedRange): Promise<readonly Hold[] | AllocatorError> {
  const values = wanted.flatMap(({ value }) => value ?? []);
  const looked = values.length === 0 ? [] : await range.lookUp(values);
  if (looked instanceof AllocatorError) return looked;
  let holds: readonly Hold[] = [];
  for (const [place, value] of values.entries()) {
    const each = looked[place];
    if (each?.inRange && each.hold) holds = withHold(holds, [String(range.itemOf(value))], termsOf(each.hold));
  }
  return holds;
}

/** What another request took for its Service is that one's, though it may not be there yet. */
async function isOfAnotherService({ table, request }: Job, { requestId }: HoldTerms): Promise<boolean> {
  const made = requestId === undefined ? undefined : await readRequest(table, request.cluster, requestId);
  return made?.record.takesUp !== undefined;
}
