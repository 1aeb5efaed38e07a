import * as z from 'zod/mini';
import { DispatchError } from './errors.ts';
import { eventFaults } from './event-faults.ts';

/** What an event asks for. */
export interface Tick {
  /** When it was due. */
  readonly dueAtMs: number;
  /** Only these; absent: all that are registered. */
  readonly clusters?: readonly string[];
  /** Also clusters whose interval is not over. Paused ones stay paused. */
  readonly force: boolean;
}

/** Which scheduled event EventBridge sends: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events.html */
const schedule = z.looseObject({ 'detail-type': z.literal('Scheduled Event'), time: z.iso.datetime() });

const direct = z.strictObject({
  clusters: z.optional(
    z
      .array(z.string().check(z.regex(/^[a-z0-9-]{1,63}$/, 'is not the name of a cluster')))
      .check(z.minLength(1, 'names no cluster')),
  ),
  force: z.optional(z.boolean()),
});

/** Throws a `DispatchError` of code `BadEvent` for what is neither a schedule's event nor a direct invocation. */
export function parseEvent(event: unknown, nowMs: number): Tick {
  const scheduled = schedule.safeParse(event);
  if (scheduled.success) return { dueAtMs: Date.parse(scheduled.data.time), force: false };

  const asked = direct.safeParse(event);
  if (!asked.success) throw badEvent(eventFaults(asked.error));
  const { clusters, force = false } = asked.data;
  return { dueAtMs: nowMs, force, ...(clusters === undefined ? {} : { clusters: [...new Set(clusters)] }) };
}

function badEvent(faults: string): DispatchError {
  return new DispatchError(
    'BadEvent',
    `The event is neither a schedule's (EventBridge, "Scheduled Event" with its time) nor ` +
      `{"clusters": ["name"], "force": true}, both of which may be left out: ${faults}`,
  );
}
