import * as z from 'zod/mini';
import { DispatchError } from '../runtime/deadline.ts';
import { clusterName, shapeFaults } from '../spec/shapes.ts';
import { exceededBound } from '../util/json-bounds.ts';
import { defined, jsonIn } from '../util/values.ts';
import type { PatchOperation, RefusalStatus } from './response.ts';
import { type Service, serviceShape } from './service.ts';

const texts = z.record(z.string(), z.string());
const common = {
  headers: z.nullish(texts),
  body: z.nullish(z.string()),
  isBase64Encoded: z._default(z.boolean(), false),
};
const httpEvent = z.union([
  /** The event of a function URL (payload format 2.0). */
  z.object({
    ...common,
    rawPath: z.string(),
    rawQueryString: z._default(z.string(), ''),
    requestContext: z.object({ http: z.object({ method: z.string() }), timeEpoch: z.optional(z.number()) }),
  }),
  /** The event of a REST API (payload format 1.0). Absent values are `null`. */
  z.object({
    ...common,
    path: z.string(),
    httpMethod: z.string(),
    queryStringParameters: z.nullish(texts),
    requestContext: z.object({ requestTimeEpoch: z.optional(z.number()) }),
  }),
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
  const { path, method, timeout, cameAtMs } = lineOf(data);
  const cluster = path.replace(/^\//, '');
  if (!clusterName.safeParse(cluster).success) return httpReply(404, 'not found');
  if (method !== 'POST') return httpReply(405, 'method not allowed', { allow: 'POST' });
  const token = bearerTokenIn(data);
  if (token === undefined) return unauthorized();
  const bodyBytes = Buffer.byteLength(data.body ?? '');
  const body = () => bodyOf(data, bodyBytes);
  return { cluster, token, timeoutMs: timeoutIn(timeout), cameAtMs, bodyBytes, body };
}

/** Returns the fields that have different names in the two payload formats. */
function lineOf(event: HttpEvent) {
  if ('rawPath' in event) {
    const { rawPath: path, rawQueryString, requestContext } = event;
    const timeout = new URLSearchParams(rawQueryString).get('timeout');
    return { path, timeout, method: requestContext.http.method, cameAtMs: requestContext.timeEpoch };
  }
  const { path, httpMethod: method, queryStringParameters: query, requestContext } = event;
  return { path, timeout: query?.['timeout'], method, cameAtMs: requestContext.requestTimeEpoch };
}

export function httpReply(statusCode: number, text: string, headers: WebhookReply['headers'] = {}): WebhookReply {
  return { statusCode, headers: { 'content-type': 'text/plain', ...headers }, body: `${text}\n` };
}

/** Returns one reply for a missing token, a wrong token and an unknown cluster, so that callers cannot distinguish them. */
export function unauthorized(): WebhookReply {
  return httpReply(401, 'unauthorized', { 'www-authenticate': 'Bearer' });
}

/**
 * Returns the reply for a token that cannot be checked now. The header `retry-after` makes an API server repeat the review
 * after a second, up to ten times within the timeout. A wait in this function would use up Lambda's concurrency instead.
 */
export function unknownToken(): WebhookReply {
  return httpReply(503, 'unavailable', { 'retry-after': '1' });
}

function bearerTokenIn({ headers }: HttpEvent): string | undefined {
  const [, value] = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return /^Bearer +(\S+) *$/i.exec(value ?? '')?.[1];
}

function bodyOf({ body, isBase64Encoded }: HttpEvent, bytes: number): string | WebhookReply {
  if (bytes > MOST_BYTES * (isBase64Encoded ? 4 / 3 : 1)) return httpReply(413, 'larger than 3.25 MiB');
  const text = body ?? '';
  return isBase64Encoded ? Buffer.from(text, 'base64').toString() : text;
}

/** Converts a text such as `10s` to ms. Returns `undefined` if the text is not 1 to 999 whole seconds. */
function timeoutIn(text: string | null | undefined): number | undefined {
  const [, seconds] = /^([1-9]\d{0,2})s$/.exec(text ?? '') ?? [];
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

/** The maximum number of values in a body. An update of a Service with 690 ports has 2 × 690 ports of 18 values each. */
const MOST_VALUES = 25_000;
const DEEPEST = 64;

/** Returns the review of a new or changed Service, or the fault of the body. `other` is any other request: `DELETE Service`. */
export function reviewIn(
  text: string,
): Review | { readonly uid: string; readonly other: string } | { readonly fault: string } {
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
  const old = operation === 'UPDATE' ? serviceShape.safeParse(oldObject) : undefined;
  if (old?.success === false) return faultOf(old.error, 'request.oldObject');
  return { uid, namespace, dryRun, operation, service: service.data, ...defined({ oldService: old?.data }) };
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
