import { boundedText } from '../cluster/bounded-text.ts';
import { ClusterError } from './errors.ts';
import { readStatus } from './protobuf-status.ts';
import { OverBound, parseBoundedJson } from './reply-bounds.ts';
import type { ApiReply, OpenReply } from './transport.ts';

/** The `Status` of a reply that is no success. */
export interface ApiStatus {
  /** `AlreadyExists`, `Conflict`, `NotFound`, `Expired` ...; empty when the reply is no Status. */
  readonly reason: string;
  readonly message: string;
  /** What was not found: `namespaces`, `services` ... */
  readonly detailsKind: string;
  readonly causes: readonly string[];
  readonly retryAfterSeconds: number;
}

export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textAt(record: JsonRecord, field: string): string {
  const value = record[field];
  return typeof value === 'string' ? value : '';
}

function numberAt(record: JsonRecord, field: string): number {
  const value = record[field];
  return typeof value === 'number' ? value : 0;
}

export function recordAt(record: JsonRecord, field: string): JsonRecord {
  const value = record[field];
  return isRecord(value) ? value : {};
}

function listAt(record: JsonRecord, field: string): readonly unknown[] {
  const value = record[field];
  return Array.isArray(value) ? value : [];
}

export function isProtobuf(reply: Pick<OpenReply, 'headers'>): boolean {
  return (reply.headers['content-type'] ?? '').startsWith('application/vnd.kubernetes.protobuf');
}

const text = new TextDecoder('utf-8');

/** `undefined`: not JSON. Throws `ReplyTooLarge`. */
export function jsonOf(reply: ApiReply, site: CallSite): unknown {
  try {
    return parseBoundedJson(reply.body);
  } catch (error) {
    throw error instanceof OverBound ? tooLarge(site, error) : error;
  }
}

const NO_STATUS: ApiStatus = { reason: '', message: '', detailsKind: '', causes: [], retryAfterSeconds: 0 };

/** Never throws: what is no Status comes with an empty reason and the start of its text as message. */
export function statusOf(reply: ApiReply): ApiStatus {
  try {
    return isProtobuf(reply) ? { ...NO_STATUS, ...readStatus(reply.body) } : statusIn(reply);
  } catch {
    return NO_STATUS;
  }
}

function statusIn(reply: ApiReply): ApiStatus {
  const body = parseBoundedJson(reply.body);
  if (!isRecord(body) || body['kind'] !== 'Status') {
    return { ...NO_STATUS, message: text.decode(reply.body.subarray(0, 200)) };
  }
  const details = recordAt(body, 'details');
  return {
    reason: textAt(body, 'reason'),
    message: textAt(body, 'message'),
    detailsKind: textAt(details, 'kind'),
    causes: listAt(details, 'causes').map((cause) => (isRecord(cause) ? textAt(cause, 'reason') : '')),
    retryAfterSeconds: numberAt(details, 'retryAfterSeconds'),
  };
}

/**
 * The API knows no such kind: an older Kubernetes. A known group says so in a Status without details; of an unknown one
 * the router says it in plain text.
 */
export function isNotServed(reply: ApiReply): boolean {
  const { message } = statusOf(reply);
  return (
    reply.status === 404 &&
    (message === 'the server could not find the requested resource' || message.trim() === '404 page not found')
  );
}

/** Where a call went and what for, for its messages: `https://10.0.0.1:6443`, `get Service default/kubernetes`. */
export interface CallSite {
  readonly server: string;
  readonly purpose: string;
}

/** Lists are requested without a limit. */
export const PART_OF_A_LIST = 'a part of the list where all of it was requested';

export function malformed({ server, purpose }: CallSite, problem: string, cause?: unknown): ClusterError {
  return new ClusterError(
    'MalformedReply',
    `${server} answered "${purpose}" with what no Kubernetes API server sends: ${problem}. ` +
      'Check that the server URL in the kubeconfig is an API server and that nothing in between changes its replies.',
    cause === undefined ? undefined : { cause },
  );
}

export function tooLarge({ server, purpose }: CallSite, cause: OverBound): ClusterError {
  return new ClusterError(
    'ReplyTooLarge',
    `The reply of ${server} to "${purpose}" has ${cause.message}, which is more than is read. The pass ends and changes nothing. ` +
      'Check that the server URL in the kubeconfig is an API server, and remove or split the object if it is real.',
    { cause },
  );
}

/** The error for a reply with a status that its caller does not expect. */
export function refused({ server, purpose }: CallSite, reply: ApiReply): ClusterError {
  const status = statusOf(reply);
  const said = `${server} answered ${reply.status} to "${purpose}"${status.message && `: ${boundedText(status.message)}`}`;
  const error = (code: ClusterError['code'], remedy: string) => new ClusterError(code, `${said}. ${remedy}`);
  if (reply.status === 401) {
    return error(
      'Unauthorized',
      'The credential in the kubeconfig has run out or is for another cluster: put in a current one.',
    );
  }
  if (reply.status === 403) {
    return error('Forbidden', 'Grant this to the user or service account of the kubeconfig.');
  }
  if (isNotServed(reply)) {
    return error(
      'Rejected',
      'This server does not serve that kind: a newer Kubernetes does, or the server URL in the kubeconfig is wrong.',
    );
  }
  if (status.reason === '') {
    return malformed(
      { server, purpose },
      `status ${reply.status} without a Status object (${boundedText(status.message) || 'empty'})`,
    );
  }
  return error('Rejected', 'Nothing was changed; what it says has to be corrected before the next pass can do better.');
}
