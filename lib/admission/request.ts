import * as z from 'zod/mini';
import { DispatchError } from '../runtime/deadline.ts';
import { clusterName, shapeFaults } from '../spec/shapes.ts';
import { exceededBound } from '../util/json-bounds.ts';
import { jsonIn } from '../util/values.ts';
import type { PatchOperation, RefusalStatus } from './response.ts';
import { type Service, serviceShape } from './service.ts';

/** The event of a function URL (payload format 2.0). */
const urlEvent = z.object({
  rawPath: z.string(),
  rawQueryString: z._default(z.string(), ''),
  headers: z.record(z.string(), z.string()),
  body: z.optional(z.string()),
  isBase64Encoded: z._default(z.boolean(), false),
  requestContext: z.object({ http: z.object({ method: z.string() }), timeEpoch: z.optional(z.number()) }),
});

const texts = z.record(z.string(), z.string());
/** The event of a REST API (payload format 1.0). Absent values are `null`. */
const apiEvent = z.object({
  path: z.string(),
  httpMethod: z.string(),
  queryStringParameters: z.nullish(texts),
  headers: z.nullish(texts),
  body: z.nullish(z.string()),
  isBase64Encoded: z._default(z.boolean(), false),
  requestContext: z.object({ requestTimeEpoch: z.optional(z.number()) }),
});

const httpEvent = z.union([
  urlEvent,
  z.pipe(
    apiEvent,
    z.transform(({ path, httpMethod, queryStringParameters, headers, body, isBase64Encoded, requestContext }) => ({
      rawPath: path,
      rawQueryString: new URLSearchParams(queryStringParameters ?? {}).toString(),
      headers: headers ?? {},
      body: body ?? undefined,
      isBase64Encoded,
      requestContext: { http: { method: httpMethod }, timeEpoch: requestContext.requestTimeEpoch },
    })),
  ),
]);

type HttpEvent = z.infer<typeof httpEvent>;

export interface WebhookReply {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request with the name of a cluster and a token. Neither the name nor the token is verified yet. */
export interface AdmissionHttpRequest {
  readonly cluster: string;
  readonly token: string;
  readonly body: () => string | WebhookReply;
  /** The number of bytes of the body as it was received. */
  readonly bodyBytes: number;
  readonly timeoutMs: number | undefined;
  /** When the endpoint received the request. The handler may start later, because Lambda may have to start a process. */
  readonly cameAtMs: number | undefined;
}

/**
 * The maximum number of bytes in a body. An API server sends 3,147,121 bytes for an update of a Service with annotations of
 * 256 KiB. The review contains these annotations twice, and JSON may escape each byte as six bytes.
 */
const MOST_BYTES = 3.25 * 1024 * 1024;

/** Returns the request, or an error reply. @throws DispatchError `BadEvent` if the event is not an HTTP request. */
export function httpRequestIn(event: unknown): AdmissionHttpRequest | WebhookReply {
  const { data, success } = httpEvent.safeParse(event);
  if (!success) throw new DispatchError('BadEvent', 'The event is neither that of a function URL nor of a REST API.');
  const { rawPath, headers, requestContext, rawQueryString } = data;
  const cluster = rawPath.replace(/^\//, '');
  if (!clusterName.safeParse(cluster).success) return httpReply(404, 'not found');
  if (requestContext.http.method !== 'POST')
    return { ...httpReply(405, 'method not allowed'), headers: { allow: 'POST' } };
  const token = bearerTokenIn(headers);
  if (token === undefined) return unauthorized();
  const { timeEpoch: cameAtMs } = requestContext;
  const bodyBytes = Buffer.byteLength(data.body ?? '');
  const body = () => bodyOf(data, bodyBytes);
  return { cluster, token, timeoutMs: timeoutIn(rawQueryString), cameAtMs, bodyBytes, body };
}

export function httpReply(statusCode: number, text: string): WebhookReply {
  return { statusCode, headers: { 'content-type': 'text/plain' }, body: `${text}\n` };
}

/** Returns the reply for a missing token, a wrong token and an unknown cluster: callers cannot distinguish them. */
export function unauthorized(): WebhookReply {
  return { ...httpReply(401, 'unauthorized'), headers: { 'content-type': 'text/plain', 'www-authenticate': 'Bearer' } };
}

/**
 * Returns the reply for a token that cannot be checked now. The header `retry-after` makes an API server repeat the
 * review after a second, up to ten times within the timeout. A wait in this function would use up its concurrency instead.
 */
export function unknownToken(): WebhookReply {
  return { ...httpReply(503, 'unavailable'), headers: { 'content-type': 'text/plain', 'retry-after': '1' } };
}

function bearerTokenIn(headers: HttpEvent['headers']): string | undefined {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return /^Bearer +(\S+) *$/i.exec(value ?? '')?.[1];
}

function bodyOf({ body = '', isBase64Encoded }: HttpEvent, bytes: number): string | WebhookReply {
  if (bytes > MOST_BYTES * (isBase64Encoded ? 4 / 3 : 1)) return httpReply(413, 'larger than 3.25 MiB');
  return isBase64Encoded ? Buffer.from(body, 'base64').toString() : body;
}

/** Returns the timeout (in ms) of a query such as `timeout=10s`; `undefined` if it is not 1 to 999 whole seconds. */
function timeoutIn(query: string): number | undefined {
  const [, seconds] = /^([1-9]\d{0,2})s$/.exec(new URLSearchParams(query).get('timeout') ?? '') ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
const LONGEST_NAME = 253;

const review = z.object({
  apiVersion: z.literal(API_VERSION, `is not ${API_VERSION}`),
  kind: z.literal(KIND, `is not ${KIND}`),
  request: z.object({
    uid: z.string().check(z.minLength(1, 'is empty'), z.maxLength(LONGEST_NAME, 'is too long')),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
    operation: z.string(),
    namespace: z._default(z.string().check(z.maxLength(LONGEST_NAME, 'is too long')), ''),
    subResource: z._default(z.string(), ''),
    dryRun: z._default(z.boolean(), false),
    object: z.optional(z.unknown()),
    oldObject: z.optional(z.unknown()),
  }),
});

export interface Review {
  readonly uid: string;
  readonly namespace: string;
  readonly operation: 'CREATE' | 'UPDATE';
  readonly dryRun: boolean;
  readonly service: Service;
  readonly oldService?: Service;
}

export interface ReviewResponse {
  readonly allowed: boolean;
  readonly patch?: readonly PatchOperation[];
  readonly status?: RefusalStatus;
}

/**
 * The maximum number of values in a body: enough for an update of a Service with 690 ports. An API server sends each port twice,
 * each time as 18 values including its managed fields.
 */
const MOST_VALUES = 25_000;
const DEEPEST = 64;

type OtherReview = { readonly uid: string; readonly other: string };

/**
 * Returns the review of a Service, or the fault of the body. For an object or operation that never gets addresses or
 * ports, returns its description as `other`.
 */
export function reviewIn(text: string): Review | OtherReview | { readonly fault: string } {
  const exceeded = exceededBound(text, { levels: DEEPEST, values: MOST_VALUES });
  if (exceeded === 'levels') return { fault: `the body is nested more than ${DEEPEST} levels deep` };
  if (exceeded === 'values') return { fault: `the body has more than ${MOST_VALUES} values` };
  const parsed = review.safeParse(jsonIn(text));
  if (!parsed.success) return faultOf(parsed.error, 'the body');
  const { uid, kind, operation, namespace, subResource, dryRun, object, oldObject } = parsed.data.request;
  const isService = kind.group === '' && kind.version === 'v1' && kind.kind === 'Service' && subResource === '';
  if (!isService || (operation !== 'CREATE' && operation !== 'UPDATE')) {
    return { uid, other: `${operation} ${kind.kind}${subResource && `/${subResource}`}`.slice(0, LONGEST_NAME) };
  }
  const service = serviceShape.safeParse(object);
  if (!service.success) return faultOf(service.error, 'request.object');
  const common = { uid, namespace, dryRun, service: service.data };
  if (operation === 'CREATE') return { ...common, operation };
  const oldService = serviceShape.safeParse(oldObject);
  if (!oldService.success) return faultOf(oldService.error, 'request.oldObject');
  return { ...common, operation, oldService: oldService.data };
}

export function reviewReply(uid: string, { patch = [], ...answer }: ReviewResponse): WebhookReply {
  const text = Buffer.from(JSON.stringify(patch)).toString('base64');
  const response = { uid, ...answer, ...(patch.length > 0 && { patchType: 'JSONPatch', patch: text }) };
  const body = JSON.stringify({ apiVersion: API_VERSION, kind: KIND, response });
  return { statusCode: 200, headers: { 'content-type': 'application/json' }, body };
}

function faultOf(error: Parameters<typeof shapeFaults>[0], whole: string): { readonly fault: string } {
  return { fault: `${whole}: ${shapeFaults(error, 'it')}`.slice(0, 2 * LONGEST_NAME) };
}
