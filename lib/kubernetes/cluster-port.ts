import type { Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';

/** The kinds that the loops touch. */
export type Kind = 'Namespace' | 'Service' | 'Endpoints' | 'EndpointSlice' | 'Event' | 'ServiceCIDR';

export interface ObjectRef {
  readonly kind: Kind;
  /** Absent for kinds without a namespace. */
  readonly namespace?: string;
  readonly name: string;
}

export type CreateResult<T> =
  | { readonly outcome: 'created'; readonly object: T }
  | { readonly outcome: 'alreadyExists' }
  /** The namespace is being deleted (403) or is not there (404). */
  | { readonly outcome: 'namespaceUnavailable'; readonly message: string }
  /** The API server refused the object as invalid (422). */
  | { readonly outcome: 'invalid'; readonly message: string };

export type UpdateResult<T> =
  | { readonly outcome: 'updated'; readonly object: T }
  | { readonly outcome: 'conflict' }
  | { readonly outcome: 'notFound' }
  | { readonly outcome: 'invalid'; readonly message: string };

export type DeleteResult = 'deleted' | 'conflict' | 'notFound';

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
  mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<UpdateResult<T>>;
  /** Deletes exactly the object that was read: `object.metadata` must carry uid and resourceVersion. */
  delete(object: KubernetesObject): Promise<DeleteResult>;
  /**
   * Every Service of the cluster, once, from one consistent snapshot, in the order of the API, while the list arrives.
   * When it does not come whole the iteration throws: the consumer must drop what it has, which proves nothing.
   */
  services(): AsyncIterable<ServiceClaim>;
}
