import { AllocatorError } from '../allocator/errors.ts';
import { type HoldTerms, holdOn, isOver } from '../cluster/hold.ts';
import { TableError } from '../table/errors.ts';
import type { LookedUp } from '../table/range-draft.ts';
import type { Given } from '../table/range-operations.ts';
import type { ReadRequest, RequestRecord } from '../table/requests.ts';
import { type Answer, type AnsweredItem, done, errorOf, type Refusal, refused, shownHold } from './answer.ts';
import { askEach, holdsOn, type Job, takeUpNow, type WantedRange } from './job.ts';
import type { AllocateRequest, ItemValue } from './request.ts';

/** How long what is taken is held when a request says nothing else. */
const HOLD_MS = 15 * 60 * 1000;

export type Terms = Omit<HoldTerms, 'requestId'>;
type Begun = Pick<RequestRecord, 'hold' | 'takesUp'>;

/** On which terms everything of a request is held, whoever finishes it and when. */
export function termsOf({ requestId, hold }: AllocateRequest, nowMs: number): Terms {
  const { owner = requestId, until, takenUpBy = 'any' } = hold ?? {};
  if (until === 'forever') return { owner, takenUpBy };
  return { owner, takenUpBy, untilMs: until === undefined ? nowMs + HOLD_MS : Date.parse(until) };
}

/** Why nothing is allocated on these terms any more. */
export function holdIsOver(terms: Terms, nowMs: number): Refusal | undefined {
  if (!isOver(terms, nowMs)) return undefined;
  const [until, now] = [terms.untilMs ?? nowMs, nowMs].map((ms) => new Date(ms).toISOString());
  return { code: 'BadHold', message: `the hold was to end at ${until}, and it is ${now}: ask for one that ends later` };
}

/**
 * Takes in every range what this request does not hold yet. The answer is not settled by this: refused, everything that
 * it did take is to be given back.
 */
export async function takeItems(
  { request, wanted, ranges, nowMs }: Job,
  terms: Terms,
  takesUp: Begun['takesUp'],
): Promise<Answer> {
  const hold = { ...terms, requestId: request.requestId };
  const shown = shownHold(terms);
  const items: AnsweredItem[] = [];
  for (const each of ranges) {
    const over = holdIsOver(terms, nowMs());
    if (over !== undefined) return refused(request, wanted, over);
    const values = each.wanted.map(({ value }) => value);
    const taken = await each.range.take(values, { hold, ...takeUpNow(request, nowMs(), takesUp?.[each.name]) });
    if (taken.outcome === 'refused') {
      const fault = taken.index === undefined ? undefined : each.wanted[taken.index]?.index;
      return refused(request, wanted, taken.error, (index) => index === fault);
    }
    for (const [place, { index }] of each.wanted.entries()) {
      const value = taken.items[place];
      if (value !== undefined) items[index] = { range: each.name, value, outcome: 'allocated', hold: shown };
    }
  }
  const over = holdIsOver(terms, nowMs());
  return over === undefined ? done(request, items) : refused(request, wanted, over);
}

/** Gives back everything that this request holds. False when a range does not let go of it now. */
export async function giveBackAll(job: Job, begun: Begun): Promise<boolean> {
  return giveBackBut(job, begun, []);
}

/**
 * After another invocation settled the answer: gives back what this one took too late to be part of it. What cannot be
 * given back stays until its hold ends.
 */
export async function giveBackRest(job: Job, begun: Begun, answer: Answer): Promise<void> {
  try {
    await giveBackBut(job, begun, answer.outcome === 'done' ? answer.items : []);
  } catch (error) {
    if (!(error instanceof TableError)) throw error;
    job.tell(error);
  }
}

async function giveBackBut(
  { request, ranges, nowMs }: Job,
  { hold, takesUp }: Begun,
  kept: readonly AnsweredItem[],
): Promise<boolean> {
  if (hold === undefined) return true;
  // What is over waits for the pass that has seen the Services, and is freed by it. What was held before is held so again.
  const isFreed = !isOver(hold, nowMs());
  const { requestId } = request;
  let all = true;
  for (const { name, range } of ranges) {
    const former = takesUp?.[name] ?? [];
    if (!isFreed && former.length === 0) continue;
    const own = new Set(kept.filter((item) => item.range === name).map(({ value }) => value));
    const held = await range.heldBy(requestId);
    if (held instanceof AllocatorError) {
      all = false;
      continue;
    }
    const rest = held.filter((value) => !own.has(value) && (isFreed || holdOn(former, String(value)) !== undefined));
    if ((await range.giveBack(rest, { requestId, former })) instanceof AllocatorError) all = false;
  }
  return all;
}

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

/** How each item stands. Reads alone: nothing of it is recorded. */
export async function lookUpItems({ request, wanted, ranges }: Job): Promise<Answer> {
  const answers = await askEach(ranges, async (each) => {
    const looked = await each.range.lookUp(each.wanted.map(({ value }) => value ?? ''));
    return looked instanceof AllocatorError ? looked : { each, looked };
  });
  if (answers instanceof AllocatorError) return refused(request, wanted, answers);
  const items: AnsweredItem[] = [];
  for (const { each, looked } of answers) {
    for (const [place, { index, value = '' }] of each.wanted.entries()) {
      items[index] = answered(each, value, looked[place] ?? { inRange: false });
    }
  }
  return done(request, items);
}

function answered({ name, range }: WantedRange, value: string | number, looked: LookedUp): AnsweredItem {
  const item = range.itemOf(value);
  if (item instanceof AllocatorError || !looked.inRange) {
    return { range: name, value, outcome: 'notInRange', ...(item instanceof Error && { error: errorOf(item) }) };
  }
  const { taken, hold, strikes, band } = looked;
  const outcome = taken ? 'taken' : 'free';
  return { range: name, value: item, outcome, ...(hold && { hold: shownHold(hold) }), strikes, band };
}
