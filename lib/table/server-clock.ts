import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** The table's time in a reply, and the time of this host around it. */
interface DatedReply {
  /** The time in the `Date` header, in whole seconds: the reply was written within the second that begins here. */
  readonly dateMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** This host's clock, corrected by the table's. */
export interface ServerClock {
  readonly nowMs: () => number;
  /** Whether any reply has shown the table's time. */
  readonly isMeasured: () => boolean;
  /** The least difference of this host's clock from the table's that the replies prove; 0 if they agree. */
  readonly skewMs: () => number;
}

/**
 * Above this difference a host's clock is wrong: a function reports it, and `kbctl` writes nothing that depends on
 * time.
 */
export const MOST_SKEW_MS = 2_000;

/** Enough to determine a correction within a few milliseconds. */
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
    // Close to the connection: each attempt is measured separately.
    { step: 'deserialize', priority: 'low', name: 'serverClock' },
  );
  return {
    isMeasured: () => replies.length > 0,
    skewMs: () => 0 - correctionBy(replies),
    nowMs: () => nowMs() + correctionBy(replies),
  };
}

/**
 * Returns the smallest correction that all replies allow; if there is none, because a clock was set meanwhile, the
 * smallest that the last reply allows.
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

/** The type of the response is internal to the SDK. */
function dateOf(response: unknown): number {
  const headers: unknown = Object(response)['headers'];
  return Date.parse(String(Object(headers)['date']));
}
