import * as z from 'zod/mini';
import { shapeFaults } from '../cluster/shapes.ts';
import { clusterName, DispatchError } from '../runtime/errors.ts';

export interface ReceivedMessage {
  readonly body: string;
  /** An earlier invocation received it and did not delete it: its process ended. */
  readonly isRedelivered: boolean;
}

export type DispatchRequest =
  /** A tick for all registered clusters. */
  | { readonly kind: 'schedule'; readonly dueAtMs: number }
  /** Queued ticks, not parsed yet. */
  | { readonly kind: 'queue'; readonly messages: readonly ReceivedMessage[] }
  | {
      readonly kind: 'direct';
      /** Only these clusters; absent: all registered ones. */
      readonly clusters?: readonly string[];
      /** Includes clusters whose interval is not over. Paused ones stay paused. */
      readonly force: boolean;
    };

/** The event that EventBridge sends: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events.html */
const schedule = z.looseObject({ 'detail-type': z.literal('Scheduled Event'), time: z.iso.datetime() });

/** The event that SQS sends: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
const queue = z.looseObject({
  Records: z
    .array(
      z.looseObject({
        eventSource: z.literal('aws:sqs'),
        body: z.string(),
        attributes: z.optional(z.looseObject({ ApproximateReceiveCount: z.optional(z.string()) })),
      }),
    )
    .check(z.minLength(1, 'is empty')),
});

const direct = z.strictObject({
  clusters: z.optional(z.array(clusterName).check(z.minLength(1, 'names no cluster'))),
  force: z.optional(z.boolean()),
});

/** Throws a `DispatchError` of code `BadEvent` for any other event. */
export function parseEvent(event: unknown): DispatchRequest {
  const scheduled = schedule.safeParse(event);
  if (scheduled.success) return { kind: 'schedule', dueAtMs: Date.parse(scheduled.data.time) };
  const queued = queue.safeParse(event);
  if (queued.success) {
    const messages = queued.data.Records.map(({ body, attributes }) => {
      return { body, isRedelivered: Number(attributes?.ApproximateReceiveCount ?? 1) > 1 };
    });
    return { kind: 'queue', messages };
  }

  const request = direct.safeParse(event);
  if (!request.success) throw badEvent(shapeFaults(request.error, 'the event'));
  const { clusters, force = false } = request.data;
  return { kind: 'direct', force, ...(clusters === undefined ? {} : { clusters: [...new Set(clusters)] }) };
}

function badEvent(faults: string): DispatchError {
  return new DispatchError(
    'BadEvent',
    `The event must be a schedule's (EventBridge, "Scheduled Event" with its time), a queue's (SQS), or ` +
      `{"clusters": ["name"], "force": true}, both optional: ${faults}`,
  );
}
