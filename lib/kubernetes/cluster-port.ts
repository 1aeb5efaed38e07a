import { CodedError } from '../cluster/coded-error.ts';
import type { IPAddressRecord, Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { ProbeReply } from '../endpoints/probe-outcome.ts';

/** The kinds that the loops touch. */
export type Kind = 'Namespace' | 'Service' | 'Endpoints' | 'EndpointSlice' | 'Event' | 'ServiceCIDR' | 'IPAddress';

export interface ObjectRef {
  readonly kind: Kind;
  /** Absent for kinds without a namespace. */
  readonly namespace?: string;
  readonly name: string;
}

/** The caller may not write: nothing was sent, and `object` is what would have been. */
interface Withheld<T> {
  readonly outcome: 'withheld';
  readonly object: T;
}

export type CreateResult<T> =
  | { readonly outcome: 'created'; readonly object: T }
  | Withheld<T>
  | { readonly outcome: 'alreadyExists' }
  /** The namespace is being deleted (403) or is not there (404). */
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

/**
 * One cluster's API server. Every call throws a `ClusterError` for what is not an expected outcome, and ends when the
 * pass's deadline does.
 */
export interface ClusterPort {
  get<T extends KubernetesObject>(ref: ObjectRef): Promise<T | undefined>;
  /** A list that fits in one small reply. `labelSelector` as in the API: `kubernetes.io/service-name=kubernetes`. */
  list<T extends KubernetesObject>(kind: Kind, namespace: string | undefined, labelSelector?: string): Promise<T[]>;
  /** `object` must carry apiVersion, kind and metadata. */
  create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>>;
  /** Replaces the whole object. `object.metadata.resourceVersion` must be the one that was read. */
  update<T extends KubernetesObject>(object: T): Promise<UpdateResult<T>>;
  /** JSON merge patch (RFC 7396). */
  mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<PatchResult<T>>;
  /** Deletes exactly the object that was read: `object.metadata` must carry uid and resourceVersion. */
  delete(object: KubernetesObject): Promise<DeleteResult>;
  /**
   * Every Service of the cluster, once, from one consistent snapshot, in the order of the API, while the list arrives.
   * When it does not come whole the iteration throws: the consumer must drop what it has, which proves nothing.
   * @param selection what the API server, where it can, leaves out: `withClusterIPs` Services without a cluster IP, whatever their
   * type, and `withNodePorts` Services of types that have no node ports
   */
  services(selection?: ServiceSelection): AsyncIterable<ServiceClaim>;
  /** Every IPAddress of the cluster, as `services` returns Services. `Rejected`: Kubernetes is older than 1.33. */
  ipAddresses(): AsyncIterable<IPAddressRecord>;
}

export type ServiceSelection = 'all' | 'withClusterIPs' | 'withNodePorts';

export type ClusterErrorCode =
  /** 401. */
  | 'Unauthorized'
  /** 403. */
  | 'Forbidden'
  /** 429, after the retries that the deadline allowed. */
  | 'Throttled'
  /** Refused, reset, no route, DNS, 5xx, a reply that was cut off. A write may or may not have happened. */
  | 'Unavailable'
  /** The certificate did not verify, or is for another name. */
  | 'TlsFailure'
  | 'DeadlineExceeded'
  /** The reply is not what the API promises: not JSON, another kind, half a list. */
  | 'MalformedReply'
  /** The reply, or what it contains, is larger than a pass accepts. */
  | 'ReplyTooLarge'
  /** 4xx that no caller expects (400, 405, 406, 422 on a patch ...). */
  | 'Rejected'
  /** The kubeconfig is missing, does not parse, or asks for something that is refused. */
  | 'BadKubeconfig';

/** The control plane that a pass reads. */
export interface ControlPlane {
  /** A hash of the URL and the CA in the kubeconfig. */
  readonly id: string;
  /**
   * Returns whether the kubeconfig leads to this control plane, and all requests of the pass went there. Reads it again if it
   * was read longer ago than that. @throws ClusterError
   */
  readonly confirm: (maxAgeMs: number) => Promise<boolean>;
}

/** Anything about an API server that is not an expected outcome. The message says what failed and what to do next. */
export class ClusterError extends CodedError<ClusterErrorCode> {
  override readonly name = 'ClusterError';
}

interface Resource {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

export const RESOURCES: Readonly<Record<Kind, Resource>> = {
  Namespace: { apiVersion: 'v1', plural: 'namespaces', namespaced: false },
  Service: { apiVersion: 'v1', plural: 'services', namespaced: true },
  Endpoints: { apiVersion: 'v1', plural: 'endpoints', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices', namespaced: true },
  Event: { apiVersion: 'events.k8s.io/v1', plural: 'events', namespaced: true },
  ServiceCIDR: { apiVersion: 'networking.k8s.io/v1', plural: 'servicecidrs', namespaced: false },
  IPAddress: { apiVersion: 'networking.k8s.io/v1', plural: 'ipaddresses', namespaced: false },
};

/** Path of all objects of a kind, in one namespace or, without one, in all. */
export function collectionPath(kind: Kind, namespace: string | undefined): string {
  const { apiVersion, plural, namespaced } = RESOURCES[kind];
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${group}${scope}/${plural}`;
}

export function objectPath(ref: ObjectRef): string {
  return `${collectionPath(ref.kind, ref.namespace)}/${encodeURIComponent(ref.name)}`;
}

/** `Service default/kubernetes`. */
export function describeRef(ref: ObjectRef): string {
  return ref.namespace === undefined ? `${ref.kind} ${ref.name}` : `${ref.kind} ${ref.namespace}/${ref.name}`;
}

function isKind(text: string | undefined): text is Kind {
  return text !== undefined && Object.hasOwn(RESOURCES, text);
}

/** Throws a `TypeError` for an object that does not say what it is, or is of a kind that the port does not know. */
export function refOf(object: KubernetesObject): ObjectRef {
  const { kind, apiVersion, metadata } = object;
  if (!isKind(kind) || RESOURCES[kind].apiVersion !== apiVersion) {
    throw new TypeError(`${kind ?? 'an object without a kind'} of ${apiVersion ?? 'no apiVersion'} is not known here`);
  }
  const { name, namespace } = metadata;
  if (name === '' || RESOURCES[kind].namespaced !== (namespace !== undefined)) {
    throw new TypeError(`${kind} "${name}" needs ${name === '' ? 'a name' : 'its namespace, if its kind has one'}`);
  }
  return namespace === undefined ? { kind, name } : { kind, namespace, name };
}

export interface ProbeTarget {
  /** Whole URL, `https://10.0.0.1:6443/readyz`. */
  readonly url: string;
  /** TLS server name when it is not the URL's host. */
  readonly serverName?: string;
  /** Send the kubeconfig's credential; to a host that the spec does not name, only where it is the kubeconfig's. A token of AWS STS goes to its server alone. */
  readonly authenticate: boolean | 'atKubeconfigHost';
}

/** `signal`: the time for probes, beside that of a single one. */
export type Prober = (target: ProbeTarget, signal?: AbortSignal) => Promise<ProbeReply>;

/**
 * Returns every A and AAAA record of a host name, canonical texts. `undefined`: the look-up failed, or the signal ended it,
 * which proves nothing.
 */
export type HostResolver = (host: string, signal?: AbortSignal) => Promise<readonly string[] | undefined>;
