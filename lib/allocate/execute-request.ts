import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { TableError } from '../table/key-value-table.ts';
import { isKept, type ReadRequest, type RequestRecord, readRequest, writeRequest } from '../table/requests.ts';
import { type Answer, answerShape, refusedAnswer } from './answer.ts';
import {
  allocateItems,
  holdIsOver,
  inProgress,
  releaseItems,
  releaseRecord,
  releaseSurplus,
  rollBack,
  termsOfRequest,
  unsureOfRelease,
} from './items.ts';
import { fingerprintOf } from './request.ts';
import { claimableHolds, fromEach, type RequestContext } from './request-context.ts';

/**
 * Allocates or releases the items of a request at most once, even if several invocations process it. For each step, one
 * invocation replaces the request's record with a conditional write, and the others continue with the new record
 * (docs/adr/0013-requests-to-allocate.md).
 * @throws TableError if the state of the request is unknown: another invocation with the same id resumes the request.
 */
export async function executeRequest(context: RequestContext): Promise<Answer> {
  const begun = await begin(context);
  if (isRefused(begun)) return refusedAnswer(context.request, begun);
  let { current, isOurs } = begun;
  let mayHold = false;
  for (;;) {
    const { record } = current;
    if (record.state === 'done') {
      const answer = answerIn(current, record.answer);
      if (!isOurs && mayHold) await releaseSurplus(context, record, answer);
      return { ...answer, ...(!isOurs && { replayed: true }) };
    }
    let next: RequestRecord;
    if (record.state === 'begun') {
      next = await proceed(context, record, isOurs);
      mayHold = record.hold !== undefined;
    } else {
      // If the rollback is incomplete, a retry releases the remaining items, or a repair frees them after the end of the hold.
      if (!(await rollBack(context, record))) return answerIn(current, record.answer);
      next = { ...record, state: 'done' };
      mayHold = false;
    }
    ({ current, isOurs } = await step(context, next, current));
  }
}

interface Begun {
  readonly current: ReadRequest;
  readonly isOurs: boolean;
}

/** Writes the record with state `begun`, or returns the existing record. A refusal writes no record. */
async function begin(context: RequestContext): Promise<Begun | Refusal> {
  const { request, nowMs, observeOnly } = context;
  const takes = request.operation === 'allocate';
  const [found, record, unrepaired] = await Promise.all([
    read(context),
    takes ? allocationRecord(context, fingerprintOf(request)) : releaseRecord(context, fingerprintOf(request)),
    takes ? context.refusalOfUnrepaired() : undefined,
  ]);
  const follow = (there: ReadRequest) =>
    refusalToFollow(context, there, unrepaired) ?? { current: there, isOurs: false };
  if (found !== undefined && isKept(found, nowMs())) return follow(found);
  if (observeOnly !== undefined) return observeOnly;
  if (record === 'stillHolds') {
    // The items are held for an old request with this id, or for this request if another invocation has begun it meanwhile.
    const there = await read(context);
    if (there !== undefined && isKept(there, nowMs())) return follow(there);
    const { cluster, requestId } = request;
    return idIsTaken(`an earlier request with the requestId ${requestId} still holds items in cluster ${cluster}`);
  }
  if (isRefused(record)) return record;
  if (unrepaired !== undefined) return unrepaired;
  const begun = await step(context, record, found);
  return begun.isOurs ? begun : follow(begun.current);
}

/**
 * Returns a refusal if the record is of a different request, or if another invocation of this request may still be running.
 * @throws TableError `Unavailable` if the mode is `observe`, or the range has no recent repair: an earlier invocation may have
 * allocated or released items, so a refusal would be wrong.
 */
function refusalToFollow(
  context: RequestContext,
  there: ReadRequest,
  unrepaired: Refusal | undefined,
): Refusal | undefined {
  const { state, fingerprint } = there.record;
  const { cluster, requestId } = context.request;
  if (fingerprint !== fingerprintOf(context.request)) {
    return idIsTaken(`another request to cluster ${cluster} of the last 24 hours has the requestId ${requestId}`);
  }
  if (state === 'done') return undefined;
  const closed = context.observeOnly ?? (state === 'begun' ? unrepaired : undefined);
  const running = inProgress(there.record, context.nowMs());
  if (closed !== undefined && running === undefined) throw new TableError('Unavailable', closed.message);
  return running;
}

async function allocationRecord(
  context: RequestContext,
  fingerprint: string,
): Promise<RequestRecord | Refusal | 'stillHolds'> {
  const { request, ranges, nowMs } = context;
  const held = await fromEach(ranges, ({ range }) => range.heldBy(request.requestId));
  if (isRefused(held)) return held;
  if (held.some(({ length }) => length > 0)) return 'stillHolds';
  const hold = termsOfRequest(request, nowMs());
  const over = holdIsOver(hold, nowMs());
  const begun = { fingerprint, state: 'begun', hold } as const;
  if (over !== undefined || request.takeUp === undefined) return over ?? begun;
  const takesUp = await claimableHolds(context, request.takeUp.holdOwner);
  return isRefused(takesUp) ? takesUp : { ...begun, takesUp };
}

/** Does the work of a request that has begun, and returns its next record: `done` or `rollingBack`. */
async function proceed(
  context: RequestContext,
  { state: _, ...record }: RequestRecord,
  isOurs: boolean,
): Promise<RequestRecord> {
  if (record.hold === undefined) {
    const answer = isOurs ? await releaseItems(context, record.releases) : unsureOfRelease(context);
    return { ...record, state: 'done', answer: JSON.stringify(answer) };
  }
  const answer = await allocateItems(context, record.hold, record.takesUp);
  const state = answer.outcome === 'done' ? 'done' : 'rollingBack';
  return { ...record, state, answer: JSON.stringify(answer) };
}

/** Replaces the record. If another invocation has replaced it first, returns the record of that invocation. */
async function step(context: RequestContext, record: RequestRecord, previous: ReadRequest | undefined): Promise<Begun> {
  const { table, request, nowMs } = context;
  const { requestId: id, cluster } = request;
  const written = await writeRequest(table, { cluster, id, nowMs: nowMs() }, record, previous?.item);
  if (written.outcome === 'won') return { current: { record, item: written.item }, isOurs: true };
  const there = await read(context);
  if (there !== undefined && isKept(there, nowMs())) return { current: there, isOurs: false };
  throw new TableError(
    'Contended',
    `The record of request ${id} of cluster ${cluster} was removed while it was being processed.`,
  );
}

function read({ table, request }: RequestContext): Promise<ReadRequest | undefined> {
  return readRequest(table, request.cluster, request.requestId);
}

function answerIn({ item: { cluster, key } }: ReadRequest, text: string): Answer {
  try {
    return answerShape.parse(JSON.parse(text));
  } catch (error) {
    const message = `Item ${cluster}/${key} does not parse: its answer is not valid. It was not changed; remove it to start again.`;
    throw new TableError('Corrupt', message, { cause: error });
  }
}

function idIsTaken(why: string): Refusal {
  return refused('RequestIdTaken', `${why}: use a new id for each request`);
}
