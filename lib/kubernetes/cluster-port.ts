import type { IPAddressRecord, Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { ProbeReply } from '../cluster/probe-reply.ts';
import type { ProbeSpec, SharedHostSpec } from '../spec/cluster-spec.ts';
import { CodedError, defined } from '../util/values.ts';

export type Kind = 'Namespace' | 'Service' | 'Endpoints' | 'EndpointSlice' | 'Event' | 'ServiceCIDR' | 'IPAddress';

export interface ObjectRef {
  readonly kind: Kind;
  readonly namespace?: string;
  readonly name: string;
}

/** The write was only reported, not sent. `object` has the content that the write would have produced. */
interface Withheld<T> {
  readonly outcome: 'withheld';
  readonly object: T;
}

export type CreateResult<T> =
  | { readonly outcome: 'created'; readonly object: T }
  | Withheld<T>
  | { readonly outcome: 'alreadyExists' }
  /** The namespace is being deleted (403) or does not exist (404). */
  | { readonly outcome: 'namespaceUnavailable'; readonly message: string }
  /** The API server refused the object as invalid (422). */
  | { readonly outcome: 'invalid'; readonly message: string };

export type UpdateResult<T> = { readonly outcome: 'updated'; readonly object: T } | Withheld<T> | NotUpdated;

export type PatchResult<T> =
  | { readonly outcome: 'updated'; readonly object: T }
  | { readonly outcome: 'withheld' }
  | NotUpdated;

type NotUpdated =
  | { readonly outcome: 'conflict' }
  | { readonly outcome: 'notFound' }
  | { readonly outcome: 'invalid'; readonly message: string };

export type DeleteResult = 'deleted' | 'conflict' | 'notFound' | 'withheld';

/** The API server of one cluster. Every call ends at the deadline of the pass, and throws a `ClusterError` if it fails. */
export interface ClusterPort {
  get<T extends KubernetesObject>(ref: ObjectRef): Promise<T | undefined>;
  /** Returns a list, which must fit in one reply (2 MiB). A selector is, for example, `kubernetes.io/service-name=kubernetes`. */
  list<T extends KubernetesObject>(kind: Kind, namespace: string | undefined, labelSelector?: string): Promise<T[]>;
  create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>>;
  /** Replaces the whole object. `object.metadata.resourceVersion` must be the version that was read. */
  update<T extends KubernetesObject>(object: T): Promise<UpdateResult<T>>;
  /** Applies a JSON merge patch (RFC 7396). */
  mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<PatchResult<T>>;
  /** Deletes an object if it has not changed since it was read. `object.metadata` must contain uid and resourceVersion. */
  delete(object: KubernetesObject): Promise<DeleteResult>;
  /**
   * Iterates over all Services of one consistent snapshot, in batches as the reply arrives. Throws if the reply is incomplete: the
   * caller then discards the Services.
   * @param selection allows the API server to omit Services without a cluster IP, or of a type that has no node ports
   */
  services(selection?: ServiceSelection): AsyncIterable<readonly ServiceClaim[]>;
  /** Iterates over all IPAddresses in the same way as `services`. Throws `Rejected` for Kubernetes before 1.33. */
  ipAddresses(): AsyncIterable<readonly IPAddressRecord[]>;
  /** Returns the earliest `Date` of the replies so far, in ms, if any. API servers behind one address may have different clocks. */
  servedAtMs(): number | undefined;
  /** Returns whether this caller may use the verb on all objects of a cluster-scoped kind. */
  allows(verb: string, kind: Kind): Promise<boolean>;
}

export type ServiceSelection = 'all' | 'withClusterIPs' | 'withNodePorts';

export type ClusterErrorCode =
  | 'Unauthorized'
  | 'Forbidden'
  /** The API server answered 429 to the last attempt. */
  | 'Throttled'
  /** The API server did not answer, answered 5xx, or sent an incomplete reply. A write may have happened. */
  | 'Unavailable'
  /** The certificate did not verify, or is for another name. */
  | 'TlsFailure'
  | 'DeadlineExceeded'
  /** The reply breaks the API contract: it cannot be decoded, has another kind, or is an incomplete list. */
  | 'MalformedReply'
  /** The reply, or what it contains, is larger than a pass accepts. */
  | 'ReplyTooLarge'
  /** The API server answered another 4xx, such as 400 or 422, or does not serve the kind. */
  | 'Rejected'
  /** The kubeconfig is missing or refused, or AWS refused a call for the kubeconfig, for a token or for a target group. */
  | 'BadKubeconfig';

export interface ControlPlane {
  /** A hash of the URL, the TLS server name and the CA in the kubeconfig. */
  readonly id: string;
  /** Returns whether the kubeconfig still has this `id`. Reuses a read of the last `maxAgeMs`. Throws a `ClusterError`. */
  readonly confirm: (maxAgeMs: number) => Promise<boolean>;
}

/** An unexpected error of an API server, or of the access to it. The message states what failed and what to do next. */
export class ClusterError extends CodedError<ClusterErrorCode> {
  override readonly name = 'ClusterError';
  /** The URL of the API server. Absent if the error is about one object, or no server was called. */
  readonly server: string | undefined;

  constructor(code: ClusterErrorCode, message: string, options: ErrorOptions & { readonly server?: string } = {}) {
    super(code, message, options);
    const { cause, server } = options;
    this.server = isFaultOfObject(this) ? undefined : cause instanceof ClusterError ? cause.server : server;
  }
}

const FAULTS_OF_OBJECTS: ReadonlySet<ClusterErrorCode> = new Set([
  'Forbidden',
  'MalformedReply',
  'ReplyTooLarge',
  'Rejected',
] as const);

/** Returns whether a call failed because of its object. If so, calls for other objects may still succeed. */
export function isFaultOfObject(error: unknown): error is ClusterError {
  return error instanceof ClusterError && FAULTS_OF_OBJECTS.has(error.code);
}

/** Waits for a call. Returns its result, or its error if it failed because of its object. Throws other errors. */
export async function resultOrFault<Result>(call: Promise<Result>): Promise<Result | ClusterError> {
  return call.catch((error: unknown) => {
    if (!isFaultOfObject(error)) throw error;
    return error;
  });
}

/** Returns true if the caller lacks the permission for a whole kind; false if, for example, a policy refused a single object. */
export function isFaultOfKind({ code, message }: ClusterError): boolean {
  return code === 'Forbidden' && / cannot [a-z]+ resource "/.test(message);
}

interface Resource {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** True if some supported API servers do not serve the kind. */
  readonly isNew?: true;
}

export const RESOURCES: Readonly<Record<Kind, Resource>> = {
  Namespace: { apiVersion: 'v1', plural: 'namespaces', namespaced: false },
  Service: { apiVersion: 'v1', plural: 'services', namespaced: true },
  Endpoints: { apiVersion: 'v1', plural: 'endpoints', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices', namespaced: true },
  Event: { apiVersion: 'events.k8s.io/v1', plural: 'events', namespaced: true },
  ServiceCIDR: { apiVersion: 'networking.k8s.io/v1', plural: 'servicecidrs', namespaced: false, isNew: true },
  IPAddress: { apiVersion: 'networking.k8s.io/v1', plural: 'ipaddresses', namespaced: false, isNew: true },
};

export function collectionPath(kind: Kind, namespace: string | undefined): string {
  const { apiVersion, plural, namespaced } = RESOURCES[kind];
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${group}${scope}/${plural}`;
}

export function objectPath(ref: ObjectRef): string {
  return `${collectionPath(ref.kind, ref.namespace)}/${encodeURIComponent(ref.name)}`;
}

/** Returns the reference as text, such as `Service default/kubernetes`. */
export function describeRef(ref: ObjectRef): string {
  return ref.namespace === undefined ? `${ref.kind} ${ref.name}` : `${ref.kind} ${ref.namespace}/${ref.name}`;
}

export function refOf({ kind, metadata: { name, namespace } }: KubernetesObject): ObjectRef {
  return { kind: kind as Kind, name, ...defined({ namespace }) };
}

export interface ProbeTarget extends Omit<ProbeSpec, 'url' | 'path' | 'authenticate'> {
  readonly url: string;
  /** Whether the probe sends the credential. A token of AWS STS is sent only to the server that is its audience. */
  readonly authenticate: boolean | 'atKubeconfigHost';
  /** True if the URL has the address of one server, not of a load balancer. The next probe may then reuse the connection. */
  readonly isOneServer?: true;
}

/** Probes a target. A probe ends at its own time limit, or earlier when `signal` aborts. */
export type Prober = (target: ProbeTarget, signal?: AbortSignal) => Promise<ProbeReply>;

/** Returns the canonical addresses of a host's A and AAAA records; `undefined` if the look-up fails, is aborted or finds none. */
export type HostResolver = (host: string, signal?: AbortSignal) => Promise<readonly string[] | undefined>;

export interface FoundAddresses {
  readonly addresses: readonly string[];
  /** States which part of the source could not be read. That part may contain any address, so no address counts as absent. */
  readonly unread?: string;
}

/** Returns the addresses of a source in a spec; `undefined` if the look-up failed. Throws a `ClusterError`. */
export type LookUp = (source: SharedHostSpec, signal: AbortSignal) => Promise<FoundAddresses | undefined>;
