import { AllocatorError } from '../allocator/errors.ts';
import { holdOn } from '../cluster/held-items.ts';
import { type HoldTerms, isOver } from '../cluster/hold.ts';
import { TableError } from '../table/errors.ts';
import type { RequestRecord } from '../table/requests.ts';
import { type Answer, type AnsweredItem, done, type Refusal, refused, shownHold } from './answer.ts';
import type { Job } from './job.ts';
import type { AllocateRequest } from './request.ts';
import { takeUpNow } from './take-up.ts';

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
