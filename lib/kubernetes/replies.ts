import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { boundedText, isRecord, type JsonRecord } from '../util/values.ts';
import {
  ClusterError,
  type ClusterErrorCode,
  type Kind,
  type ObjectRef,
  RESOURCES,
  type UpdateResult,
} from './cluster-port.ts';
import type { HttpReply } from './http-client.ts';
import { OverBound, parseBoundedJson, requireListBounds, requireObjectBounds } from './reply-bounds.ts';
import { recordAt, statusOf, textAt } from './status.ts';

/** Parses the JSON of a reply; returns `undefined` if the text is not JSON. Throws `ReplyTooLarge`. */
export function jsonOf(reply: ApiReply): unknown {
  return withinBounds(reply, () => parseBoundedJson(reply.body));
}

/** Returns the JSON object of a reply. Throws `MalformedReply` or `ReplyTooLarge`. */
export function recordOf(reply: ApiReply): JsonRecord {
  const body = jsonOf(reply);
  if (!isRecord(body)) throw malformed(reply, 'no JSON object, or not all of it');
  return body;
}

function withinBounds<Read>(site: CallSite, read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    throw error instanceof OverBound ? tooLarge(site, error) : error;
  }
}

/** Returns whether the API server is too old for the kind. A server that does not even know the API group sends plain text. */
export function isNotServed(reply: ApiReply): boolean {
  const { message } = statusOf(reply);
  return (
    reply.status === 404 &&
    (message === 'the server could not find the requested resource' || message.trim() === '404 page not found')
  );
}

/** Returns true if the object does not exist. Status 404 alone is no proof, because a proxy may send it for any object. */
export function isAbsent(reply: ApiReply): boolean {
  return reply.status === 404 && statusOf(reply).reason === 'NotFound' && !isNotServed(reply);
}

export interface CallSite {
  /** The URL of the server, such as `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The purpose of the request, such as `get Service default/kubernetes`. */
  readonly purpose: string;
}

export interface ApiReply extends Omit<HttpReply, 'body'>, CallSite {
  readonly body: Uint8Array;
}

/** Throws for an incomplete list: lists are requested without a limit, so a reply must contain all items. */
export function requireWholeList(site: CallSite, resourceVersion: string, continueToken: string): void {
  if (resourceVersion === '') throw malformed(site, 'a list without a resourceVersion');
  if (continueToken !== '') throw malformed(site, 'a part of the list where all of it was requested');
}

export function malformed({ server, purpose }: CallSite, problem: string, cause?: unknown): ClusterError {
  return new ClusterError(
    'MalformedReply',
    `${server} answered "${purpose}" unlike a Kubernetes API server: ${problem}. ` +
      'Check that the server URL in the kubeconfig is an API server and that no proxy changes its replies.',
    { cause },
  );
}

export function tooLarge({ server, purpose }: CallSite, cause: OverBound): ClusterError {
  return new ClusterError(
    'ReplyTooLarge',
    `The reply of ${server} to "${purpose}" is over a limit: ${cause.message}. ` +
      'Check that the server URL in the kubeconfig is an API server, and remove or split the object if it is real.',
    { cause },
  );
}

const UNAUTHORIZED =
  'The credential in the kubeconfig has expired or is for another cluster: replace it. With webIdentity, the ' +
  "AuthenticationConfiguration of the API server must accept the token's issuer, audience and role.";

export function failedCall(reply: ApiReply, code: ClusterErrorCode, remedy: string): ClusterError {
  const { message } = statusOf(reply);
  const answer = `${reply.server} answered ${reply.status} to "${reply.purpose}"${message && `: ${boundedText(message)}`}`;
  return new ClusterError(code, `${answer}${answer.endsWith('.') ? '' : '.'} ${remedy}`, { server: reply.server });
}

export function refusedCall(reply: ApiReply): ClusterError {
  const { reason, message } = statusOf(reply);
  if (reply.status === 401) return failedCall(reply, 'Unauthorized', UNAUTHORIZED);
  if (reply.status === 403) {
    // A right for anonymous requests would open the cluster to every client.
    const isAnonymous = message.includes('system:anonymous');
    const remedy = isAnonymous
      ? 'The request had no credential that the API server accepts: put one into the kubeconfig. Grant nothing to anonymous requests.'
      : 'Grant this to the user or service account of the kubeconfig.';
    return failedCall(reply, 'Forbidden', remedy);
  }
  if (isNotServed(reply)) {
    const remedy =
      'This server does not serve that kind: a newer Kubernetes does, or the server URL in the kubeconfig is wrong.';
    return failedCall(reply, 'Rejected', remedy);
  }
  if (reason === '') {
    return malformed(reply, `status ${reply.status} without a Status object (${boundedText(message) || 'empty'})`);
  }
  const remedy = 'Nothing was changed. Correct what the message names; the next pass tries again.';
  return failedCall(reply, 'Rejected', remedy);
}

export function updateResult<T extends KubernetesObject>(reply: ApiReply, ref: ObjectRef): UpdateResult<T> {
  const { reason, message } = reply.status === 200 ? { reason: '', message: '' } : statusOf(reply);
  if (reply.status === 409 && reason === 'Conflict') return { outcome: 'conflict' };
  if (isAbsent(reply)) return { outcome: 'notFound' };
  if (reply.status === 422) return { outcome: 'invalid', message: boundedText(message) };
  return { outcome: 'updated', object: objectIn<T>(reply, ref) };
}

/** Returns the object of a reply. Throws if it is not the object `ref`, or if a field that passes read has a wrong type. */
export function objectIn<T extends KubernetesObject>(reply: ApiReply, ref: ObjectRef): T {
  if (reply.status !== 200 && reply.status !== 201) throw refusedCall(reply);
  const body = recordOf(reply);
  if (body['kind'] !== ref.kind || body['apiVersion'] !== RESOURCES[ref.kind].apiVersion) {
    throw malformed(reply, `${boundedText(body['kind'])} of ${boundedText(body['apiVersion'])}`);
  }
  const metadata = recordAt(body, 'metadata');
  if (metadata['name'] !== ref.name || metadata['namespace'] !== ref.namespace || !metadata['resourceVersion']) {
    throw malformed(reply, 'another object, or one without a resourceVersion');
  }
  return boundedObject<T>(body, ref.kind, reply);
}

/** Returns the items of a JSON list. Adds kind and apiVersion, which the list omits, so that an item can be written. */
export function listIn<T extends KubernetesObject>(reply: ApiReply, kind: Kind): T[] {
  if (reply.status !== 200) throw refusedCall(reply);
  const body = jsonOf(reply);
  const { apiVersion } = RESOURCES[kind];
  if (!isRecord(body) || body['kind'] !== `${kind}List` || body['apiVersion'] !== apiVersion) {
    throw malformed(reply, `no ${apiVersion} ${kind}List, or not all of it`);
  }
  const { items } = body;
  if (!Array.isArray(items) || !items.every((item) => isRecord(item) && textAt(recordAt(item, 'metadata'), 'name'))) {
    throw malformed(reply, 'a list whose items have no names');
  }
  const metadata = recordAt(body, 'metadata');
  requireWholeList(reply, textAt(metadata, 'resourceVersion'), textAt(metadata, 'continue'));
  withinBounds(reply, () => requireListBounds(kind, items));
  return items.map((item: JsonRecord) => boundedObject<T>({ apiVersion, kind, ...item }, kind, reply));
}

function boundedObject<T extends KubernetesObject>(read: JsonRecord, kind: Kind, site: CallSite): T {
  const object = asRead(kind, read) as JsonRecord & T;
  const field = wrongField(kind, object);
  if (field !== undefined) throw malformed(site, `${kind} with another type in ${field} than the API has`);
  withinBounds(site, () => requireObjectBounds(kind, object));
  return object;
}

type FieldType = 'object' | 'text' | 'texts' | 'integer';

const METADATA = {
  'metadata.namespace': 'text',
  'metadata.uid': 'text',
  'metadata.resourceVersion': 'text',
  'metadata.creationTimestamp': 'text',
  'metadata.labels': 'texts',
} as const;

/** Types of the fields that passes read; a proxy may send other types. `[]`: the items of a list; `!`: a required field. */
const TYPES: Readonly<Partial<Record<Kind, Readonly<Record<string, FieldType>>>>> = {
  Service: {
    ...METADATA,
    spec: 'object',
    'spec.type': 'text',
    'spec.clusterIP': 'text',
    'spec.clusterIPs.[]': 'text',
    'spec.ports.[]': 'object',
    'spec.ports.[].protocol': 'text',
    'spec.ports.[].nodePort': 'integer',
    'spec.healthCheckNodePort': 'integer',
  },
  Endpoints: {
    'subsets.[].addresses.[].ip!': 'text',
    'subsets.[].notReadyAddresses.[].ip!': 'text',
    'subsets.[].ports.[]': 'object',
  },
  EndpointSlice: { 'endpoints.[].addresses.[]': 'text', 'ports.[]': 'object' },
  ServiceCIDR: { 'spec.cidrs!.[]': 'text', 'spec!': 'object', 'status.conditions.[]': 'object' },
  IPAddress: { ...METADATA, 'spec.parentRef': 'texts' },
};

/** Returns the first field that is missing or does not have the API's type; `undefined` if all fields are valid. */
export function wrongField(kind: Kind, object: JsonRecord): string | undefined {
  const fields = Object.entries(TYPES[kind] ?? {});
  const wrong = fields.find(([path, type]) => isWrong(object, path.split('.'), type));
  return wrong?.[0].replaceAll('.[]', '[]').replaceAll('!', '');
}

const isText = (value: unknown) => typeof value === 'string';
const IS_TYPE: Readonly<Record<FieldType, (value: unknown) => boolean>> = {
  object: isRecord,
  text: isText,
  texts: (value) => isRecord(value) && Object.values(value).every(isText),
  integer: Number.isSafeInteger,
};

function isWrong(value: unknown, [step, ...rest]: readonly string[], type: FieldType): boolean {
  if (step === '[]') return !Array.isArray(value) || value.some((item) => isWrong(item, rest, type));
  if (step === undefined) return !IS_TYPE[type](value);
  if (!isRecord(value)) return true;
  const field = value[step.replace('!', '')];
  return field === undefined ? step.endsWith('!') : isWrong(field, rest, type);
}

/** Returns the object as an API server reads it: a field that is null is absent, and an absent `spec` of a Service is empty. */
function asRead(kind: Kind, object: JsonRecord): JsonRecord {
  return { ...(kind === 'Service' && { spec: {} }), ...Object(withoutNulls(object)) };
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutNulls(field)]));
}
