import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

interface DatedReply {
  /** The time in the `Date` header, in whole seconds. The table wrote the reply within the second that begins then. */
  readonly dateMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** The clock of this host, corrected by the times in the table's replies. */
export interface ServerClock {
  readonly nowMs: () => number;
  /** Returns true if at least one reply had a time. */
  readonly isMeasured: () => boolean;
  /**
   * Returns the smallest difference between this host's clock and the table's clock that explains the times in the replies; 0 if
   * equal clocks explain them, too.
   */
  readonly skewMs: () => number;
}

/**
 * The largest difference between the clocks that is accepted. If the difference is larger, the clock of the host is wrong: a
 * function reports this, and `kbctl` writes nothing that depends on time.
 */
export const MOST_SKEW_MS = 2_000;

/** The number of replies that are kept. It is enough to determine the correction within a few milliseconds. */
const REPLIES_KEPT = 20;

/** Returns a clock that reads the `Date` header of every later reply to the client. */
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
    // This step is close to the connection, so that each attempt is measured separately.
    { step: 'deserialize', priority: 'low', name: 'serverClock' },
  );
  return {
    isMeasured: () => replies.length > 0,
    skewMs: () => 0 - correctionBy(replies),
    nowMs: () => nowMs() + correctionBy(replies),
  };
}

/**
 * Returns the smallest correction that agrees with all replies. If none agrees with all, because a clock was set meanwhile,
 * returns the smallest that agrees with the last reply.
 */
function correctionBy(replies: readonly DatedReply[]): number {
  const least = Math.max(...replies.map(({ dateMs, receivedAtMs }) => dateMs - receivedAtMs));
  const most = Math.min(...replies.map(({ dateMs, sentAtMs }) => dateMs + 1_000 - sentAtMs));
  if (least > most) return correctionBy(replies.slice(-1));
  return Math.min(Math.max(0, least), most) || 0;
}

/** Returns the time in the `Date` header. The SDK does not export the type of the response. */
function dateOf(response: unknown): number {
  const headers: unknown = Object(response)['headers'];
  return Date.parse(String(Object(headers)['date']));
}
