import { AllocatorError } from '../allocator/errors.ts';
import { termsOf, withHold } from '../cluster/held-items.ts';
import { type Hold, type HoldTerms, isOver, mayTakeUp } from '../cluster/hold.ts';
import type { TakeUp } from '../table/range-operations.ts';
import { type RequestRecord, readRequest } from '../table/requests.ts';
import type { Job, WantedRange } from './job.ts';
import type { AllocateRequest } from './request.ts';

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
