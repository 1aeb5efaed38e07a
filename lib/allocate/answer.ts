import * as z from 'zod/mini';
import type { HoldTerms } from '../cluster/hold.ts';
import { type AllocateRequest, RANGE_NAMES, type RequestedItem } from './request.ts';

const error = z.strictObject({ code: z.string(), message: z.string() });

const hold = z.strictObject({
  owner: z.string(),
  until: z.string(),
  takenUpBy: z.enum(['any', 'owner']),
  requestId: z.optional(z.string()),
});

const item = z.strictObject({
  range: z.enum(RANGE_NAMES),
  value: z.optional(z.union([z.string(), z.int()])),
  outcome: z.enum(['allocated', 'released', 'unknown', 'taken', 'free', 'notInRange', 'refused']),
  hold: z.optional(hold),
  strikes: z.optional(z.int()),
  band: z.optional(z.enum(['static', 'dynamic'])),
  error: z.optional(error),
});

/** What callers get, and what is stored for retries. */
export const answerShape = z.strictObject({
  requestId: z.string(),
  cluster: z.string(),
  operation: z.enum(['allocate', 'release', 'lookUp']),
  outcome: z.enum(['done', 'refused']),
  items: z.array(item),
  error: z.optional(error),
  replayed: z.optional(z.literal(true)),
  dryRun: z.optional(z.literal(true)),
});

export type Answer = z.infer<typeof answerShape>;
export type AnsweredItem = z.infer<typeof item>;

/** Why a request is refused. Codes and messages of allocators are the original's where it has any. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

type RequestName = Pick<AllocateRequest, 'requestId' | 'cluster' | 'operation'>;

export function done({ requestId, cluster, operation }: RequestName, items: readonly AnsweredItem[]): Answer {
  return { requestId, cluster, operation, outcome: 'done', items: [...items] };
}

/** Refuses all items. `isItsFault` returns whether the refusal is about the item at that place. */
export function refused(
  request: RequestName,
  requested: readonly RequestedItem[],
  refusal: Refusal,
  isItsFault: (index: number) => boolean = () => false,
): Answer {
  const error = errorOf(refusal);
  const items = requested.map((each, index): AnsweredItem => {
    return { ...each, outcome: 'refused', ...(isItsFault(index) && { error }) };
  });
  return { ...done(request, items), outcome: 'refused', error };
}

/** Code and message only. */
export function errorOf({ code, message }: Refusal): Refusal {
  return { code, message };
}

export function shownHold({ owner, untilMs, takenUpBy, requestId }: HoldTerms): NonNullable<AnsweredItem['hold']> {
  const until = untilMs === undefined ? 'forever' : new Date(untilMs).toISOString();
  return { owner, until, takenUpBy, ...(requestId !== undefined && { requestId }) };
}
