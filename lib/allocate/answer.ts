import * as z from 'zod/mini';
import type { Refusal } from '../allocator/refusal.ts';
import type { HoldTerms } from '../range/hold.ts';
import { described } from '../spec/shapes.ts';
import { defined, isoTime } from '../util/values.ts';
import { type AllocateRequest, RANGE_NAMES, type RequestedItem, requestedItems } from './request.ts';

const error = z.strictObject({ code: z.string(), message: z.string() });

const hold = z.strictObject({
  owner: z.string(),
  until: z.string(),
  takenUpBy: z.enum(['any', 'owner']),
  requestId: z.optional(z.string()),
});

const item = z.strictObject({
  range: z.enum(RANGE_NAMES),
  value: z.optional(
    described(z.union([z.string(), z.int()]), 'Absent where next was requested and nothing was allocated.'),
  ),
  outcome: described(
    z.enum(['allocated', 'released', 'unknown', 'taken', 'free', 'notInRange', 'refused']),
    'released: it was released, or free: it was free before. unknown: an earlier invocation of this request was not completed and may have released it. lookUp answers taken or free. refused: it did not change.',
  ),
  hold: z.optional(described(hold, 'The owner, the end of the hold, and which Services may claim it.')),
  error: z.optional(described(error, 'Why this one was refused.')),
});

/** An answer to the caller. Once a request to allocate or release has begun, its answer is stored for retries. */
export const answerShape = z.strictObject({
  requestId: z.string(),
  cluster: z.string(),
  operation: z.enum(['allocate', 'release', 'lookUp']),
  outcome: described(
    z.enum(['done', 'refused']),
    'refused: nothing was allocated. In a release over several ranges, one range can refuse after another has released: each item has its own outcome. A failure in between is not an answer but an error of the function.',
  ),
  items: described(z.array(item), 'One for each address and port, in the order of the request.'),
  error: z.optional(
    described(
      error,
      'Why the request was refused: Full, AlreadyAllocated, NotInRange, NotReady, MismatchedRange, BadHold, HoldsFull, NotRegistered, CallerRefused, OtherStack, ObserveOnly, NotSupported, NoSecondaryRange, RequestIdTaken, NotHeld or InProgress.',
    ),
  ),
  replayed: z.optional(described(z.literal(true), 'This is the stored answer of an earlier invocation.')),
  dryRun: z.optional(described(z.literal(true), 'Nothing was written.')),
});

export type Answer = z.infer<typeof answerShape>;
export type AnsweredItem = z.infer<typeof item>;

export function done({ requestId, cluster, operation }: AllocateRequest, items: readonly AnsweredItem[]): Answer {
  return { requestId, cluster, operation, outcome: 'done', items: [...items] };
}

/** Returns an answer in which all items are refused. The items for which `isItsFault` returns true have the refusal as error. */
export function refusedAnswer(
  request: AllocateRequest,
  refusal: Refusal,
  isItsFault: (item: RequestedItem, index: number) => boolean = () => false,
): Answer {
  const items = requestedItems(request).map((each, index): AnsweredItem => {
    return { ...each, outcome: 'refused', ...(isItsFault(each, index) && { error: errorOf(refusal) }) };
  });
  return { ...done(request, items), outcome: 'refused', error: errorOf(refusal) };
}

export function errorOf({ code, message }: Refusal): z.infer<typeof error> {
  return { code, message };
}

export function shownHold({ owner, untilMs, takenUpBy, requestId }: HoldTerms): NonNullable<AnsweredItem['hold']> {
  const until = untilMs === undefined ? 'forever' : isoTime(untilMs);
  return { owner, until, takenUpBy, ...defined({ requestId }) };
}
