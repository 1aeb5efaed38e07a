import * as z from 'zod/mini';
import { clusterName, DispatchError, eventFaults } from '../runtime/errors.ts';

/** What is read of the event of a function URL (payload format 2.0). */
const urlEvent = z.object({
  rawPath: z.string(),
  rawQueryString: z._default(z.string(), ''),
  headers: z.record(z.string(), z.string()),
  body: z.optional(z.string()),
  isBase64Encoded: z._default(z.boolean(), false),
  requestContext: z.object({ http: z.object({ method: z.string() }), timeEpoch: z.optional(z.number()) }),
});
type UrlEvent = z.infer<typeof urlEvent>;

/** As function URLs take it. */
export interface HttpReply {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request that names a cluster and carries a token; whether it is the right one is another matter. */
export interface AdmissionHttpRequest {
  readonly cluster: string;
  readonly token: string;
  readonly body: () => string | HttpReply;
  /** How long the API server waits, as it says itself. */
  readonly timeoutMs: number | undefined;
  /** When its request came in, which may have waited for a function that starts. */
  readonly cameAtMs: number | undefined;
}

/** An API server takes objects of 3 MB; a review carries two, and each a little larger as JSON. */
const MOST_BYTES = 6 * 1024 * 1024;

/**
 * What is asked, or why not. Nothing but the request's shape decides: that tells a stranger nothing.
 * @throws DispatchError `BadEvent` for what is no event of a function URL.
 */
export function httpRequestIn(event: unknown): AdmissionHttpRequest | HttpReply {
  const parsed = urlEvent.safeParse(event);
  if (!parsed.success) {
    throw new DispatchError('BadEvent', `The event is not one of a function URL: ${eventFaults(parsed.error)}`);
  }
  const { rawPath, headers, requestContext, rawQueryString } = parsed.data;
  const cluster = rawPath.replace(/^\//, '');
  if (!clusterName.safeParse(cluster).success) return httpReply(404, 'not found');
  if (requestContext.http.method !== 'POST')
    return { ...httpReply(405, 'method not allowed'), headers: { allow: 'POST' } };
  const token = bearerTokenIn(headers);
  if (token === undefined) return unauthorized();
  const { timeEpoch: cameAtMs } = requestContext;
  return { cluster, token, timeoutMs: timeoutIn(rawQueryString), cameAtMs, body: () => bodyOf(parsed.data) };
}

export function httpReply(statusCode: number, text: string): HttpReply {
  return { statusCode, headers: { 'content-type': 'text/plain' }, body: `${text}\n` };
}

/** The same for no token, a wrong one, and a cluster that there is not. */
export function unauthorized(): HttpReply {
  return { ...httpReply(401, 'unauthorized'), headers: { 'content-type': 'text/plain', 'www-authenticate': 'Bearer' } };
}

export function jsonReply(content: object): HttpReply {
  return { statusCode: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(content) };
}

function bearerTokenIn(headers: UrlEvent['headers']): string | undefined {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return /^Bearer +(\S+) *$/i.exec(value ?? '')?.[1];
}

function bodyOf({ body = '', isBase64Encoded }: UrlEvent): string | HttpReply {
  if (body.length > MOST_BYTES * (isBase64Encoded ? 4 / 3 : 1)) return httpReply(413, 'larger than 6 MB');
  return isBase64Encoded ? Buffer.from(body, 'base64').toString() : body;
}

/** `timeout=10s`, in whole seconds, one at least. */
function timeoutIn(query: string): number | undefined {
  const [, seconds] = /^([1-9]\d{0,2})s$/.exec(new URLSearchParams(query).get('timeout') ?? '') ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
