import * as z from 'zod/mini';
import { DispatchError } from '../runtime/deadline.ts';
import { type Loop, SCHEDULE_SECONDS } from '../spec/cluster-spec.ts';
import { clusterName, shapeFaults } from '../spec/shapes.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { jsonIn } from '../util/values.ts';

export interface ReceivedMessage {
  readonly body: string;
  /** True if an earlier invocation received the message and did not delete it, because its process ended. */
  readonly isRedelivered: boolean;
}

export type DispatchRequest =
  | { readonly kind: 'schedule'; readonly dueAtMs: number }
  | { readonly kind: 'queue'; readonly messages: readonly ReceivedMessage[] }
  | {
      readonly kind: 'direct';
      /** The clusters whose passes run. Default: all registered clusters. */
      readonly clusters?: readonly string[];
      /** True if passes run although their interval is not over. Paused clusters stay paused. */
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

/** Parses the event of an invocation. Throws a `DispatchError` of code `BadEvent` if the event has an unknown form. */
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
  if (request.success) {
    const { clusters, force = false } = request.data;
    return { kind: 'direct', force, ...(clusters && { clusters: [...new Set(clusters)] }) };
  }
  throw new DispatchError(
    'BadEvent',
    `The event must be a schedule's (EventBridge, "Scheduled Event" with its time), a queue's (SQS), or ` +
      `{"clusters": ["name"], "force": true}, both optional: ${shapeFaults(request.error, 'the event')}`,
  );
}

export interface TickMessage {
  readonly loop: Loop;
  readonly dueAtMs: number;
  readonly clusters: readonly string[];
  /** Only ticks of suspects have this time. Until then, the next tick is queued as soon as the passes of this tick end. */
  readonly followedUntilMs?: number;
}

const SCHEMA = 1;

const tickShape = z.object({
  schema: z.literal(SCHEMA, `is not ${SCHEMA}, the one that this version reads`),
  loop: z.string(),
  dueAtMs: z.number(),
  clusters: z.array(clusterName).check(z.minLength(1, 'names no cluster')),
  followedUntilMs: z.exactOptional(z.number()),
});

export function tickBody({ loop, dueAtMs, clusters, followedUntilMs }: TickMessage): string {
  return JSON.stringify({ schema: SCHEMA, loop, dueAtMs, clusters, followedUntilMs });
}

/** The message that makes an invocation count the health of clusters. Older versions do not parse it as a tick: it has no `loop`. */
const countShape = z.looseObject({
  schema: z.literal(SCHEMA),
  dueAtMs: z.number(),
  count: z.array(clusterName).check(z.minLength(1)),
});

export function countBody(dueAtMs: number, clusters: readonly { readonly name: string }[]): string {
  return JSON.stringify({ schema: SCHEMA, dueAtMs, count: clusters.map(({ name }) => name) });
}

/** The greatest age of a message that requests a count. Older messages are ignored, because each minute has a new message. */
const LONGEST_COUNT_MS = 60_000;

/** Returns the tick of a message, or the reason why `loop` cannot process it. */
function tickIn(json: unknown, loop: Loop): TickMessage | string {
  const { success, data, error } = tickShape.safeParse(json);
  if (!success) return `Not a tick message: ${shapeFaults(error, 'the event')}`;
  const { schema: _, ...tick } = data;
  return tick.loop === loop ? { ...tick, loop } : `A tick of the loop ${tick.loop}, but this is ${loop}`;
}

/** Returns how late a tick may run: one period, but at least 30 s for a suspect, because its next tick may not be queued yet. */
function longestLateMs({ loop, followedUntilMs }: TickMessage): number {
  return Math.max(SCHEDULE_SECONDS[loop] * 1000, followedUntilMs === undefined ? 0 : 30_000);
}

/** Returns the ticks of the messages that a loop received. Late ticks and unreadable messages are logged, counted and dropped. */
export function receivedTicks(loop: Loop, messages: readonly ReceivedMessage[], nowMs: number, telemetry: Telemetry) {
  const ticks: TickMessage[] = [];
  /** Ticks that an earlier process received. The process ended before the passes of these ticks ended. */
  const interrupted: TickMessage[] = [];
  /** Names of the clusters whose health this invocation counts. */
  const counted: string[] = [];
  for (const { body, isRedelivered } of messages) {
    const json = jsonIn(body);
    const { data: part } = countShape.safeParse(json);
    if (part !== undefined) {
      if (!isRedelivered && nowMs - part.dueAtMs <= LONGEST_COUNT_MS) counted.push(...part.count);
      continue;
    }
    const tick = tickIn(json, loop);
    if (typeof tick === 'string') {
      telemetry.count('unreadableTicks', 1);
      telemetry.log('error', 'message dropped', { errors: [tick] });
      continue;
    }
    const lateMs = nowMs - tick.dueAtMs;
    if (isRedelivered) {
      interrupted.push(tick);
    } else if (lateMs <= longestLateMs(tick)) {
      ticks.push(tick);
    } else {
      telemetry.count('lateTicks', 1);
      telemetry.log('warn', 'tick dropped', { lateMs, clusters: tick.clusters });
    }
  }
  return { ticks, interrupted, counted };
}
