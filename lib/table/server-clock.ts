import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** When a reply of the table was written by its own clock, and the time of this host around that. */
interface DatedReply {
  /** Whole seconds: it was written in the second that begins here. */
  readonly dateMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** This host's clock, corrected by the table's. */
export interface ServerClock {
  readonly nowMs: () => number;
  /** Whether any reply has shown the table's time. */
  readonly isMeasured: () => boolean;
  /** How far this host's clock is ahead of the table's, as far as the dates prove; 0 when they agree. */
  readonly skewMs: () => number;
}

/** Beyond this a host's clock is wrong: a function reports it, and `kbctl` writes nothing that time decides. */
export const MOST_SKEW_MS = 2_000;

/** Enough to narrow a correction down to a few milliseconds. */
const REPLIES_KEPT = 20;

/** Reads the `Date` of every reply that the client gets from now on. */
export function serverClock(client: DynamoDBClient, nowMs: () => number): ServerClock {
  let replies: readonly DatedReply[] = [];
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAtMs = nowMs();
      const result = await next(args);
      const dateMs = dateOf(result.response);
      if (!Number.isNaN(dateMs)) {
        replies = [...replies, { dateMs, sentAtMs, receivedAtMs: nowMs() }].slice(-REPLIES_KEPT);
      }
      return result;
    },
    // Next to the connection: each attempt is measured by itself.
    { step: 'deserialize', priority: 'low', name: 'serverClock' },
  );
  return {
    isMeasured: () => replies.length > 0,
    skewMs: () => 0 - correctionBy(replies),
    nowMs: () => nowMs() + correctionBy(replies),
  };
}

/**
 * The smallest correction that all replies allow; where no correction does, because a clock was set meanwhile, that the
 * last one allows.
 */
function correctionBy(replies: readonly DatedReply[]): number {
  const least = Math.max(...replies.map(leastAheadMs));
  const most = Math.min(...replies.map(mostAheadMs));
  if (least > most) return correctionBy(replies.slice(-1));
  return Math.min(Math.max(0, least), most) || 0;
}

function leastAheadMs({ dateMs, receivedAtMs }: DatedReply): number {
  return dateMs - receivedAtMs;
}

function mostAheadMs({ dateMs, sentAtMs }: DatedReply): number {
  return dateMs + 1_000 - sentAtMs;
}

/** The type of the response is the SDK's own. */
function dateOf(response: unknown): number {
  const headers: unknown = Object(response)['headers'];
  return Date.parse(String(Object(headers)['date']));
}
