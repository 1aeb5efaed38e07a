import { AllocatorError } from '../allocator/errors.ts';
import { TableError } from '../table/errors.ts';
import type { Given } from '../table/range-operations.ts';
import type { ReadRequest, RequestRecord } from '../table/requests.ts';
import { type Answer, type AnsweredItem, done, errorOf, type Refusal } from './answer.ts';
import { askEach, type Job, type WantedRange } from './job.ts';
import type { ItemValue } from './request.ts';
import { holdsOn } from './take-up.ts';

/** How far the clocks of two invocations may differ. */
const CLOCK_SKEW_MS = 5_000;
/** More than any invocation of a version that did not record its end had. */
const LONGEST_MS = 30_000;

/** Returns the record of a release that begins now, which holds what there is to release as it is now. */
export async function releaseRecord(job: Job, fingerprint: string): Promise<RequestRecord | AllocatorError> {
  const holds = await askEach(job.ranges, holdsOn);
  if (holds instanceof AllocatorError) return holds;
  const releases = Object.fromEntries(job.ranges.map(({ name }, index) => [name, holds[index] ?? []]));
  return { fingerprint, state: 'begun', releases, busyUntilMs: job.endsAtMs + CLOCK_SKEW_MS };
}

/** Why a release that another invocation began is not answered yet: that one may be at work. */
export function inProgress({ record, item }: ReadRequest, nowMs: number): Refusal | undefined {
  const { state, hold, busyUntilMs = item.updatedAtMs + LONGEST_MS } = record;
  if (state !== 'begun' || hold !== undefined || nowMs >= busyUntilMs) return undefined;
  const until = new Date(busyUntilMs).toISOString();
  const message = `another invocation of this request may be at work until ${until}: send it again then, with the same requestId`;
  return { code: 'InProgress', message };
}

/**
 * Releases range after range, before the time of this invocation is over, what is held as it was when the request began.
 * What is free, or not in the range, is left as it is.
 */
export async function releaseItems(
  { request: { owner, ...request }, ranges, nowMs, endsAtMs }: Job,
  releases: RequestRecord['releases'],
): Promise<Answer> {
  const checkTime = () => {
    if (nowMs() >= endsAtMs) throw new TableError('DeadlineExceeded', 'The time of this invocation is over.');
  };
  const items: AnsweredItem[] = [];
  let refusal: Refusal | undefined;
  for (const each of ranges) {
    const values = each.wanted.map(({ value }) => value ?? '');
    const heldAs = releases?.[each.name] ?? [];
    const given = await each.range.giveBack(values, { heldAs, checkTime, ...(owner !== undefined && { owner }) });
    const released = new Set(given instanceof AllocatorError ? [] : given.released);
    for (const { index, value = '' } of each.wanted) {
      const error = given instanceof AllocatorError ? errorOf(given) : notHeld(each, value, given, owner);
      refusal ??= error;
      items[index] = error
        ? { range: each.name, value, outcome: 'refused', error }
        : releasedItem(each, value, released);
    }
  }
  const answer = done(request, items);
  return refusal === undefined ? answer : { ...answer, outcome: 'refused', error: refusal };
}

/**
 * The answer when an earlier invocation began and did not come to its end. It is not run again: what it released may be
 * somebody else's by now, and what it did not release is a leak, which the repair loops free.
 */
export function releasedOrNot({ request, wanted }: Job): Answer {
  const items = wanted.map((each): AnsweredItem => ({ ...each, outcome: 'unknown' }));
  return done(request, items);
}

function notHeld(
  { range }: WantedRange,
  value: ItemValue,
  { kept }: Given<ItemValue>,
  owner?: string,
): Refusal | undefined {
  const item = range.itemOf(value);
  if (item instanceof AllocatorError || !kept.includes(item)) return undefined;
  const expected = owner === undefined ? 'as it was when this request began' : `by ${owner} as when this request began`;
  return { code: 'NotHeld', message: `${item} is not held ${expected}: look it up` };
}

/** An item that was asked for twice is released once. */
function releasedItem({ name, range }: WantedRange, value: ItemValue, released: Set<ItemValue>): AnsweredItem {
  const item = range.itemOf(value);
  if (item instanceof AllocatorError) return { range: name, value, outcome: 'notInRange' };
  return { range: name, value: item, outcome: released.delete(item) ? 'released' : 'free' };
}
