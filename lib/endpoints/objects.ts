import type {
  CoreV1EndpointPort,
  V1Endpoint,
  V1EndpointAddress,
  V1EndpointSlice,
  V1EndpointSubset,
  V1Endpoints,
  V1Service,
  V1ServiceCIDR,
  V1ServicePort,
  V1ServiceSpec,
} from '@kubernetes/client-node';
import type { FromJson, KubernetesObject, WholeObject } from '../cluster/kubernetes-objects.ts';
import { isRecord } from '../cluster/values.ts';

/** The Service that every cluster has, and the name of its Endpoints and of its EndpointSlice. */
export const KUBERNETES_SERVICE = { namespace: 'default', name: 'kubernetes' } as const;
export const SERVICE_REF = { kind: 'Service', ...KUBERNETES_SERVICE } as const;
export const ENDPOINTS_REF = { kind: 'Endpoints', ...KUBERNETES_SERVICE } as const;
/** The default ServiceCIDR: Kubernetes 1.33 and later. */
export const SERVICE_CIDR_REF = { kind: 'ServiceCIDR', name: KUBERNETES_SERVICE.name } as const;
export const SLICE_REF = { kind: 'EndpointSlice', ...KUBERNETES_SERVICE } as const;

/** Keeps the mirroring controller from creating an EndpointSlice of its own from our Endpoints. */
export const SKIP_MIRROR_LABEL = 'endpointslice.kubernetes.io/skip-mirror';
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';

export type EndpointAddress = FromJson<V1EndpointAddress>;
export type EndpointPort = FromJson<CoreV1EndpointPort>;
export type EndpointSubset = FromJson<V1EndpointSubset>;
export type EndpointsObject = WholeObject<V1Endpoints>;
export type SliceEndpoint = FromJson<V1Endpoint>;
export type ServicePort = FromJson<V1ServicePort>;

/** Go writes `null` for an empty list. */
export interface EndpointSliceObject extends Omit<WholeObject<V1EndpointSlice>, 'endpoints' | 'ports'> {
  readonly endpoints?: readonly SliceEndpoint[] | null;
  readonly ports?: readonly EndpointPort[] | null;
}

export interface ServiceObject extends WholeObject<V1Service> {
  readonly spec: FromJson<V1ServiceSpec>;
}

export interface ServiceCidrObject extends WholeObject<V1ServiceCIDR> {
  /** The primary range, and perhaps one of the other family. */
  readonly spec: { readonly cidrs: readonly string[] };
}

export function isNamedAsOurs({ metadata }: EndpointSliceObject): boolean {
  return metadata.name === KUBERNETES_SERVICE.name;
}

export function readyAddresses(endpoints: EndpointsObject | undefined): string[] {
  return (endpoints?.subsets ?? []).flatMap((subset) => (subset.addresses ?? []).map(({ ip }) => ip));
}

/** Returns what Endpoints or an EndpointSlice publish: ` with 10.0.0.1, 10.0.0.2 :6443`; nothing for another object. */
export function describePublished(object: KubernetesObject): string {
  if (object.kind === 'Endpoints') {
    const { subsets = [] } = object as EndpointsObject;
    return published(readyAddresses(object), subsets[0]?.ports ?? []);
  }
  if (object.kind !== 'EndpointSlice') return '';
  const { endpoints, ports } = object as EndpointSliceObject;
  const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
  return published(addresses, ports ?? []);
}

function published(addresses: readonly string[], ports: readonly EndpointPort[]): string {
  if (addresses.length === 0) return ' with no address';
  return ` with ${addresses.join(', ')}${ports.map(({ port }) => ` :${port}`).join('')}`;
}

export function samePort(one: EndpointPort, other: EndpointPort): boolean {
  return portText(one) === portText(other);
}

/** Returns the key of a port: ports that are the same have the same key. */
export function portText({ name = '', port, protocol = 'TCP', appProtocol }: EndpointPort): string {
  return JSON.stringify([name, port, protocol, appProtocol]);
}

/** Whether two values are the same to the API: the order of fields means nothing, and an absent field, null and an empty list are one. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other || (isNothing(one) && isNothing(other))) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => sameJson(item, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...fields].every((field) => sameJson(one[field], other[field]));
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
