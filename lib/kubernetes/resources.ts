import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import type { Kind, ObjectRef } from './cluster-port.ts';

interface Resource {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Where each kind lives in the API. */
export const RESOURCES: Readonly<Record<Kind, Resource>> = {
  Namespace: { apiVersion: 'v1', plural: 'namespaces', namespaced: false },
  Service: { apiVersion: 'v1', plural: 'services', namespaced: true },
  Endpoints: { apiVersion: 'v1', plural: 'endpoints', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices', namespaced: true },
  Event: { apiVersion: 'events.k8s.io/v1', plural: 'events', namespaced: true },
  ServiceCIDR: { apiVersion: 'networking.k8s.io/v1', plural: 'servicecidrs', namespaced: false },
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
