import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { type HoldTerms, holdOn, isOver } from '../range/hold.ts';
import { notHeld } from '../range/operations.ts';
import { TableError } from '../table/key-value-table.ts';
import type { RequestRecord } from '../table/requests.ts';
import { defined, isoTime } from '../util/values.ts';
import { type Answer, type AnsweredItem, done, errorOf, refusedAnswer, shownHold } from './answer.ts';
import { type AllocateRequest, type RangeName, requestedItems } from './request.ts';
import { currentHolds, fromEach, inRequestOrder, type RequestContext } from './request-context.ts';

const HOLD_MS = 15 * 60 * 1000;

export type Terms = Omit<HoldTerms, 'requestId'>;
type HeldBy = Pick<RequestRecord, 'hold' | 'takesUp'>;

export function termsOfRequest({ requestId, hold }: AllocateRequest, nowMs: number): Terms {
  const { owner = requestId, until, takenUpBy = 'any' } = hold ?? {};
  if (until === 'forever') return { owner, takenUpBy };
  return { owner, takenUpBy, untilMs: until === undefined ? nowMs + HOLD_MS : Date.parse(until) };
}

export function holdIsOver(terms: Terms, nowMs: number): Refusal | undefined {
  if (!isOver(terms, nowMs)) return undefined;
  const [until, now] = [terms.untilMs ?? nowMs, nowMs].map((ms) => isoTime(ms));
  return refused('BadHold', `the hold would end at ${until}, before the present time ${now}: set a later end`);
}

/** Allocates the items that the request does not hold yet. After a refusal, the caller must release all items of the request. */
export async function allocateItems(
  { request, ranges, nowMs }: RequestContext,
  terms: Terms,
  takesUp: HeldBy['takesUp'],
): Promise<Answer> {
  const hold = { ...terms, requestId: request.requestId };
  const shown = shownHold(terms);
  const { takeUp } = request;
  const answers: AnsweredItem[][] = [];
  for (const { name, range, values, indexes } of ranges) {
    const over = holdIsOver(terms, nowMs());
    if (over !== undefined) return refusedAnswer(request, over);
    const expected = takesUp?.[name] ?? [];
    const claim = takeUp && { claim: { nowMs, expected, holdOwner: takeUp.holdOwner } };
    const allocated = await range.allocate(values, { hold, ...claim });
    if (isRefused(allocated)) {
      const fault = indexes[allocated.index ?? -1];
      return refusedAnswer(request, allocated, (_, index) => index === fault);
    }
    answers.push(allocated.items.map((item) => ({ ...named(name, item), outcome: 'allocated', hold: shown })));
  }
  const over = holdIsOver(terms, nowMs());
  return over === undefined ? done(request, inRequestOrder(ranges, answers)) : refusedAnswer(request, over);
}

/** Releases items that this invocation allocated too late: another invocation had already recorded the answer. */
export async function releaseSurplus(context: RequestContext, held: HeldBy, answer: Answer): Promise<void> {
  await rollBack(context, held, answer.outcome === 'done' ? answer.items : []).catch((error: unknown) => {
    if (!(error instanceof TableError)) throw error;
    context.warn(error);
  });
}

/** Releases all items that this request holds, except `kept`. Returns false if a range refuses to release now. */
export async function rollBack(
  { request, ranges, nowMs }: RequestContext,
  { hold, takesUp }: HeldBy,
  kept: readonly AnsweredItem[] = [],
): Promise<boolean> {
  if (hold === undefined) return true;
  // An item with an expired hold stays allocated, because only a pass that has read the Services may free it. Holds from before
  // the request are restored in any case.
  const isFreed = !isOver(hold, nowMs());
  const { requestId } = request;
  let all = true;
  for (const { name, range } of ranges) {
    const restore = takesUp?.[name] ?? [];
    if (!isFreed && restore.length === 0) continue;
    const own = new Set(kept.filter((item) => item.range === name).map(({ value }) => String(value)));
    const held = await range.heldBy(requestId);
    if (isRefused(held)) {
      all = false;
      continue;
    }
    const rest = held.filter((value) => !own.has(value) && (isFreed || holdOn(restore, value) !== undefined));
    if (rest.length > 0 && isRefused(await range.release(rest, { requestId, restore }))) all = false;
  }
  return all;
}

/** The largest expected difference between the clocks of two invocations. */
const CLOCK_SKEW_MS = 5_000;

/** Returns the record of a release that begins now, with the current holds on its items. */
export async function releaseRecord(context: RequestContext, fingerprint: string): Promise<RequestRecord | Refusal> {
  const releases = await currentHolds(context);
  if (isRefused(releases)) return releases;
  return { fingerprint, state: 'begun', releases, busyUntilMs: context.endsAtMs + CLOCK_SKEW_MS };
}

/** Returns a refusal while another invocation of this release may still be running. */
export function inProgress({ state, busyUntilMs = 0 }: RequestRecord, nowMs: number): Refusal | undefined {
  if (state !== 'begun' || nowMs >= busyUntilMs) return undefined;
  const until = isoTime(busyUntilMs);
  const message = `another invocation of this request may be running until ${until}: send it again then, with the same requestId`;
  return refused('InProgress', message);
}

/** Releases the items whose holds have not changed since the request began. Stops at the deadline of this invocation. */
export async function releaseItems(
  { request, ranges, nowMs, endsAtMs }: RequestContext,
  releases: RequestRecord['releases'],
): Promise<Answer> {
  const { owner } = request;
  const checkTime = () => {
    if (nowMs() >= endsAtMs) throw new TableError('DeadlineExceeded', 'The deadline of this invocation was exceeded.');
  };
  const answers: AnsweredItem[][] = [];
  let refusal: Refusal | undefined;
  for (const { name, range, values } of ranges) {
    const refuse = (item: string, why: Refusal): AnsweredItem => {
      refusal ??= why;
      return { ...named(name, item), outcome: 'refused', error: errorOf(why) };
    };
    const wanted = values.flatMap((value) => value ?? []);
    const expected = releases?.[name] ?? [];
    const result = await range.release(wanted, { expected, checkTime, ...defined({ owner }) });
    answers.push(
      isRefused(result)
        ? wanted.map((item) => refuse(item, result))
        : result.map(({ item, outcome, refusal: why = notHeld(item, owner) }) =>
            outcome === 'kept' ? refuse(item, why) : { ...named(name, item), outcome },
          ),
    );
  }
  const answer = done(request, inRequestOrder(ranges, answers));
  return refusal === undefined ? answer : { ...answer, outcome: 'refused', error: errorOf(refusal) };
}

/** Returns the answer for an unfinished release. The release is not repeated: an item may have a new owner by now. */
export function unsureOfRelease({ request }: RequestContext): Answer {
  const items = requestedItems(request).map((each): AnsweredItem => ({ ...each, outcome: 'unknown' }));
  return done(request, items);
}

/** Looks up the state of each item. Writes nothing, not even a record of the request. */
export async function lookUpItems({ request, ranges }: RequestContext): Promise<Answer> {
  const answers = await fromEach(ranges, async ({ name, range, values }) => {
    const wanted = values.flatMap((value) => value ?? []);
    const states = await range.lookUp(wanted);
    if (isRefused(states)) return states;
    return states.map((state, place): AnsweredItem => {
      if (isRefused(state))
        return { ...named(name, wanted[place] ?? ''), outcome: 'notInRange', error: errorOf(state) };
      const { item, taken, hold } = state;
      return { ...named(name, item), outcome: taken ? 'taken' : 'free', ...(hold && { hold: shownHold(hold) }) };
    });
  });
  if (isRefused(answers)) return refusedAnswer(request, answers);
  return done(request, inRequestOrder(ranges, answers));
}

/** Returns the fields that identify an item in an answer. The value of a port is a number. */
function named(range: RangeName, item: string): Pick<AnsweredItem, 'range' | 'value'> {
  return { range, value: range === 'servicenodeports' ? Number(item) : item };
}
