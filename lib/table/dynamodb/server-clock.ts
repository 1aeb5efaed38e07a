import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { ServerClock } from '../key-value-table.ts';

interface DatedReply {
  /** The time in the `Date` header, in whole seconds. The table wrote the reply within the second after this time. */
  readonly dateMs: number;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** The number of replies that a clock keeps: enough for a correction that is usually accurate to a tenth of a second. */
const REPLIES_KEPT = 20;

/** Returns a clock that reads the `Date` header of every later reply to the client. */
export function serverClock(client: DynamoDBClient, nowMs: () => number): ServerClock {
  let replies: readonly DatedReply[] = [];
  let correctionMs = 0;
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAtMs = nowMs();
      const result = await next(args);
      const dateMs = dateOf(result.response);
      if (!Number.isNaN(dateMs)) {
        replies = [...replies, { dateMs, sentAtMs, receivedAtMs: nowMs() }].slice(-REPLIES_KEPT);
        correctionMs = correctionBy(replies);
      }
      return result;
    },
    // This step is close to the connection, so that each attempt is measured separately.
    { step: 'deserialize', priority: 'low' },
  );
  return {
    isMeasured: () => replies.length > 0,
    skewMs: () => 0 - correctionMs,
    nowMs: () => nowMs() + correctionMs,
  };
}

/** Returns the smallest correction that agrees with all replies. If none agrees, a clock was set: only the last reply counts. */
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
