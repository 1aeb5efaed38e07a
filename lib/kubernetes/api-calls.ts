import { setTimeout as timer } from 'node:timers/promises';
import type { Json } from '../cluster/kubernetes-objects.ts';
import { doubledMs, upperHalfOf } from '../util/back-off.ts';
import { ClusterError } from './cluster-port.ts';
import type { HttpReply } from './http-client.ts';
import { describeNetworkError, networkFaultOf } from './network-fault.ts';
import { type ApiReply, type CallSite, failedCall, malformed, tooLarge } from './replies.ts';
import { BytesInFlight, LARGEST_JSON_LIST_BYTES, OverBound, readWhole } from './reply-bounds.ts';
import { isProtobuf } from './status.ts';
import { type ApiRequest, MalformedGzip, type Transport } from './transport.ts';

export type Sleep = (ms: number, signal: AbortSignal) => Promise<unknown>;

export const sleepUntilAborted: Sleep = (ms, signal) => timer(ms, undefined, { signal });

export interface CallOptions {
  readonly transport: Transport;
  readonly server: string;
  /** The value of the User-Agent header, such as `kube-bootstrap-controller/0.1.0 (kubernetes-service)`. */
  readonly userAgent: string;
  readonly deadline: AbortSignal;
  /** Waits; rejects as soon as the signal is aborted. Default: a timer. */
  readonly sleep?: Sleep | undefined;
  readonly tries?: number;
  /** Counts the bytes of unfinished replies from all API servers. Default: counts only the replies to this client. */
  readonly inFlight?: BytesInFlight;
}

export interface AnsweredCall extends ApiReply {
  /** The body of a streamed protobuf reply; `body` is then empty. Iteration throws a `ClusterError` if the reply is cut off. */
  readonly stream?: AsyncIterable<Uint8Array>;
  /** True if the server may have carried out an earlier attempt, whose reply was lost or was a 5xx. */
  readonly afterLostReply: boolean;
}

type SendCall = (
  purpose: string,
  request: Omit<ApiRequest, 'headers' | 'body'>,
  body?: object | Json,
  accept?: string,
) => Promise<AnsweredCall>;

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;
/** The longest `Retry-After` that a call obeys. If a server requests more, the call fails, and the next pass tries again. */
const LONGEST_RETRY_AFTER_MS = 10_000;
const TRY_MS = 10_000;
/** The time limit of a streamed reply: half of the time limit of a repair pass. */
const STREAM_MS = 60_000;

interface Failure {
  readonly error: ClusterError;
  /** Absent if the call must not be retried. `mayHaveHappened`: the server may have carried out the request. */
  readonly retry?: { readonly mayHaveHappened: boolean; readonly afterMs: number };
}

/**
 * Sends calls until the deadline. Retries after a 429 or 5xx (unless `Retry-After` is too long), after no answer in time, and
 * after a network fault other than a connection timeout or a TLS failure. A retry is safe for every call of a `ClusterPort`,
 * including writes: a create contains a name, an update and a delete contain the version that was read, and a repeated merge
 * patch has no further effect. With `afterLostReply`, an answer may result from an earlier attempt, such as 404 for a delete.
 *
 * Returns any reply from 200 to 499 except 429. Throws a `ClusterError` after any other outcome.
 */
export function apiCalls(options: CallOptions): SendCall {
  const { deadline, server, userAgent, tries = 5, inFlight = new BytesInFlight() } = options;
  const sleep = options.sleep ?? sleepUntilAborted;
  return async (purpose, unsent, body, accept = 'application/json') => {
    const type = unsent.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const content = body === undefined ? {} : { 'content-type': type };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const request = { ...unsent, headers: { accept, 'user-agent': userAgent, ...content }, ...text };
    const site = { server, purpose };
    let afterLostReply = false;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await tryOnce({ ...options, inFlight }, request, site);
      if (!('error' in outcome)) return { ...outcome, afterLostReply };
      const { error, retry } = outcome;
      if (retry === undefined || attempt === tries || retry.afterMs > LONGEST_RETRY_AFTER_MS) throw error;
      afterLostReply ||= retry.mayHaveHappened;
      const backOffMs = upperHalfOf(doubledMs(FIRST_WAIT_MS, attempt - 1, LONGEST_WAIT_MS), Math.random);
      // If the deadline ends the wait, the error of the last attempt is more useful than the deadline's.
      await sleep(Math.max(retry.afterMs, backOffMs), deadline).catch(() => {
        throw error;
      });
    }
  };
}

type Reply = Omit<AnsweredCall, 'afterLostReply'>;

async function tryOnce(
  { deadline, transport, inFlight }: CallOptions & { readonly inFlight: BytesInFlight },
  request: ApiRequest,
  site: CallSite,
): Promise<Reply | Failure> {
  if (deadline.aborted) return outOfTime(site, deadline.reason);
  const limitMs = request.streamed ? STREAM_MS : TRY_MS;
  const timeout = AbortSignal.timeout(limitMs);
  const failureOf = (error: unknown): Failure => {
    if (deadline.aborted) return outOfTime(site, error);
    return timeout.aborted ? noAnswer(site, limitMs, error) : networkFailure(site, error);
  };
  try {
    const reply = await transport(request, AbortSignal.any([deadline, timeout]));
    const isList = request.streamed && reply.status === 200;
    if (isList && isProtobuf(reply)) {
      return { ...reply, ...site, body: new Uint8Array(), stream: arriving(reply.body, failureOf) };
    }
    const largestBytes = isList ? LARGEST_JSON_LIST_BYTES : undefined;
    const whole = { ...reply, ...site, body: await readWhole(reply.body, site.server, inFlight, largestBytes) };
    return reply.status === 429 || reply.status >= 500 ? serverFailure(whole) : whole;
  } catch (error) {
    return failureOf(error);
  }
}

/** Yields the body as it arrives. Does not retry, because the caller may already have used the bytes that arrived. */
async function* arriving(body: HttpReply['body'], failureOf: (error: unknown) => Failure): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw failureOf(error).error;
  }
}

function outOfTime({ server, purpose }: CallSite, cause: unknown): Failure {
  const message =
    `${server} did not answer "${purpose}" before the deadline of the pass. The next pass tries again; ` +
    'if this repeats, the API server is slow, or cannot be reached: check it, and the network path to it.';
  return { error: new ClusterError('DeadlineExceeded', message, { cause, server }) };
}

function noAnswer({ server, purpose }: CallSite, limitMs: number, cause: unknown): Failure {
  const message = `${server} did not answer "${purpose}" within ${limitMs} ms. Check the API server, and the network path to it.`;
  const error = new ClusterError('Unavailable', message, { cause, server });
  return { error, retry: { mayHaveHappened: true, afterMs: 0 } };
}

function networkFailure(site: CallSite, cause: unknown): Failure {
  const { server, purpose } = site;
  if (cause instanceof ClusterError) return { error: cause };
  if (cause instanceof OverBound) return { error: tooLarge(site, cause) };
  if (cause instanceof MalformedGzip) return { error: malformed(site, cause.message, cause) };
  const fault = networkFaultOf(cause);
  const what = describeNetworkError(cause);
  if (fault === 'tls') {
    const message =
      `The certificate of ${server} was not accepted for "${purpose}": ${what}. ` +
      'Put the CA of this cluster in the kubeconfig (certificate-authority-data), or a tls-server-name that the certificate has.';
    return { error: new ClusterError('TlsFailure', message, { cause, server }) };
  }
  const message =
    `${server} could not be reached for "${purpose}", or the connection broke: ${what}. ` +
    'Check that it runs, and the server URL in the kubeconfig; the next pass tries again.';
  const error = new ClusterError('Unavailable', message, { cause, server });
  return fault === 'silent' ? { error } : { error, retry: { mayHaveHappened: fault === 'lostReply', afterMs: 0 } };
}

function serverFailure(reply: ApiReply): Failure {
  const throttled = reply.status === 429;
  const remedy = throttled
    ? 'It is overloaded: give this user a priority level of its own, or set longer intervals in the cluster spec.'
    : 'The next pass tries again; if this repeats, check the API server and its etcd.';
  return {
    error: failedCall(reply, throttled ? 'Throttled' : 'Unavailable', remedy),
    retry: { mayHaveHappened: !throttled, afterMs: retryAfterMs(reply) },
  };
}

/** Reads only the header, because API servers send this header with each Status that has `retryAfterSeconds`. */
function retryAfterMs({ headers }: ApiReply): number {
  const seconds = headers['retry-after'] ?? '';
  return /^\d+$/.test(seconds) ? Number(seconds) * 1_000 : 0;
}
