import { AllocatorError } from '../allocator/errors.ts';
import { TableError } from '../table/errors.ts';
import {
  corruptAnswer,
  isKept,
  type ReadRequest,
  type RequestRecord,
  readRequest,
  writeRequest,
} from '../table/requests.ts';
import { type Answer, answerShape, type Refusal, refused } from './answer.ts';
import {
  giveBackAll,
  giveBackRest,
  holdIsOver,
  inProgress,
  releasedOrNot,
  releaseItems,
  releaseRecord,
  takeItems,
  termsOf,
} from './items.ts';
import { askEach, holdsToTakeUp, type Job } from './job.ts';
import { fingerprintOf } from './request.ts';

export interface Settled {
  readonly answer: Answer;
  /** Another invocation settled it. */
  readonly replayed: boolean;
}

/**
 * Allocates or releases once, however often it is invoked with one id, at the same time or after one another. Where it
 * is, is in the record; each step is a write that is conditional on the one before, so that of several invocations one
 * goes on and the others follow. docs/adr/0013-requests-to-allocate.md has the argument.
 * @throws TableError when nobody can tell how far it came: to invoke it again is to go on.
 */
export async function settleRequest(job: Job): Promise<Settled> {
  const begun = await begin(job);
  if ('answer' in begun) return { answer: begun.answer, replayed: false };
  let { current, isOurs } = begun;
  let mayHold = false;
  for (;;) {
    const { record } = current;
    if (record.state === 'done') {
      if (!isOurs && mayHold) await giveBackRest(job, record, answerIn(current, record.answer));
      return { answer: answerIn(current, record.answer), replayed: !isOurs };
    }
    let next: RequestRecord;
    if (record.state === 'begun') {
      next = await goOn(job, record, isOurs);
      mayHold = record.hold !== undefined;
    } else {
      // What does not let go now is given back by who asks again, or when its hold ends.
      if (!(await giveBackAll(job, record))) return { answer: answerIn(current, record.answer), replayed: false };
      next = { ...record, state: 'done' };
      mayHold = false;
    }
    ({ current, isOurs } = await step(job, next, current));
  }
}

interface Begun {
  readonly current: ReadRequest;
  /** The record is as this invocation wrote it. */
  readonly isOurs: boolean;
}

/** Writes `begun` where there is no record; or finds the one that there is. Refusals leave nothing behind. */
async function begin(job: Job): Promise<Begun | { readonly answer: Answer }> {
  const { request, wanted, nowMs } = job;
  const refuse = (refusal: Refusal) => ({ answer: refused(request, wanted, refusal) });
  const takes = request.operation === 'allocate';
  const [found, record, unrepaired] = await Promise.all([
    read(job),
    takes ? allocationRecord(job, fingerprintOf(request)) : releaseRecord(job, fingerprintOf(request)),
    takes ? job.refusalOfUnrepaired() : undefined,
  ]);
  const follow = (there: ReadRequest) => {
    const refusal = refusalToFollow(job, there, unrepaired);
    return refusal === undefined ? { current: there, isOurs: false } : refuse(refusal);
  };
  if (found !== undefined && isKept(found, nowMs())) return follow(found);
  if (record === 'stillHolds') {
    // Of a request of long ago; or of this one, which another invocation began meanwhile.
    const there = await read(job);
    return there !== undefined && isKept(there, nowMs()) ? follow(there) : refuse(idStillHolds(job));
  }
  if ('code' in record) return refuse(record);
  if (unrepaired !== undefined) return refuse(unrepaired);
  const begun = await step(job, record, found);
  return begun.isOurs ? begun : follow(begun.current);
}

/** Why the record of this id is not gone on from, or not yet. */
function refusalToFollow(job: Job, there: ReadRequest, unrepaired: Refusal | undefined): Refusal | undefined {
  const { state, fingerprint } = there.record;
  if (fingerprint !== fingerprintOf(job.request)) return idIsTaken(job);
  return state === 'begun' ? (inProgress(there, job.nowMs()) ?? unrepaired) : undefined;
}

async function allocationRecord(job: Job, fingerprint: string): Promise<RequestRecord | Refusal | 'stillHolds'> {
  const { request, ranges, nowMs } = job;
  const held = await askEach(ranges, ({ range }) => range.heldBy(request.requestId));
  if (held instanceof AllocatorError) return held;
  if (held.some(({ length }) => length > 0)) return 'stillHolds';
  const hold = termsOf(request, nowMs());
  const over = holdIsOver(hold, nowMs());
  const begun = { fingerprint, state: 'begun', hold } as const;
  if (over !== undefined || request.takeUp === undefined) return over ?? begun;
  const takesUp = await holdsToTakeUp(job, request.takeUp.holdOwner);
  return takesUp instanceof AllocatorError ? takesUp : { ...begun, takesUp };
}

/** The end of what was begun, or that it is to be rolled back. */
async function goOn(job: Job, { state: _, ...record }: RequestRecord, isOurs: boolean): Promise<RequestRecord> {
  if (record.hold === undefined) {
    const answer = isOurs ? await releaseItems(job, record.releases) : releasedOrNot(job);
    return { ...record, state: 'done', answer: JSON.stringify(answer) };
  }
  const answer = await takeItems(job, record.hold, record.takesUp);
  const state = answer.outcome === 'done' ? 'done' : 'rollingBack';
  return { ...record, state, answer: JSON.stringify(answer) };
}

/** Writes the record over the one before it; or finds what another invocation wrote first. */
async function step(job: Job, record: RequestRecord, previous: ReadRequest | undefined): Promise<Begun> {
  const { table, request, nowMs } = job;
  const { requestId: id, cluster } = request;
  const written = await writeRequest(table, { cluster, id, nowMs: nowMs() }, record, previous?.item);
  if (written.outcome === 'won') return { current: { record, item: written.item }, isOurs: true };
  const there = await read(job);
  if (there !== undefined && isKept(there, nowMs())) return { current: there, isOurs: false };
  throw new TableError(
    'Contended',
    `The record of request ${id} of cluster ${cluster} was removed while it was worked on.`,
  );
}

function read({ table, request }: Job): Promise<ReadRequest | undefined> {
  return readRequest(table, request.cluster, request.requestId);
}

function answerIn(kept: ReadRequest, text: string): Answer {
  try {
    return answerShape.parse(JSON.parse(text));
  } catch (error) {
    throw corruptAnswer(kept, error);
  }
}

function idIsTaken({ request }: Job): Refusal {
  return {
    code: 'RequestIdTaken',
    message: `the requestId ${request.requestId} is that of another request to cluster ${request.cluster}, of the last 24 hours: give each request an id of its own`,
  };
}

function idStillHolds({ request }: Job): Refusal {
  return {
    code: 'RequestIdTaken',
    message: `an earlier request with the requestId ${request.requestId} still holds something in cluster ${request.cluster}: give each request an id of its own`,
  };
}
