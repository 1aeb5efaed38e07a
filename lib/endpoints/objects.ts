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
import { canonicalAddress, familyOf, type IPFamily } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
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

/** Returns the reference of the slice that publishes a second family. */
export function sliceRef(family: IPFamily) {
  const { namespace, name } = KUBERNETES_SERVICE;
  return { kind: 'EndpointSlice', namespace, name: `${name}-${family.toLowerCase()}` } as const;
}

/** The objects that publish one family: Endpoints and a mirrored slice for the first, only a slice for the second. */
export interface PublishedObjects {
  readonly Endpoints?: EndpointsObject | undefined;
  readonly EndpointSlice?: EndpointSliceObject | undefined;
}

/** A family of addresses that is published. Each family is decided independently. */
export interface PublishedFamily {
  readonly family: IPFamily;
  /** Accepts every address if there is a single family. */
  readonly isOf: (address: string) => boolean;
  /** The references of its objects by kind, in the order of their writes. */
  readonly refs: { readonly Endpoints?: typeof ENDPOINTS_REF; readonly EndpointSlice: SliceRef };
}

/** A published family, with its objects as they were read. */
export interface ReadFamily extends PublishedFamily {
  readonly objects: PublishedObjects;
}

type SliceRef = typeof SLICE_REF | ReturnType<typeof sliceRef>;

/** Returns the family of the primary range, and with `PreferDualStack` the other one. */
export function publishedFamilies({
  serviceClusterIPRanges,
  service,
}: ClusterSpec): readonly [PublishedFamily, ...PublishedFamily[]] {
  const [family = 'IPv4', second] = serviceClusterIPRanges.map((range) => familyOf(range.split('/')[0] ?? ''));
  const refs = { Endpoints: ENDPOINTS_REF, EndpointSlice: SLICE_REF };
  if (service.ipFamilyPolicy !== 'PreferDualStack' || second === undefined) return [{ family, refs, isOf: () => true }];
  return [
    { family, refs, isOf: (address) => familyOf(address) === family },
    { family: second, refs: { EndpointSlice: sliceRef(second) }, isOf: (address) => familyOf(address) === second },
  ];
}

/** Returns the addresses that Endpoints have as ready, or that an EndpointSlice has, in canonical form, because another writer may spell them otherwise. */
export function addressesIn(object: EndpointsObject | EndpointSliceObject | undefined): string[] {
  const { subsets, endpoints }: Partial<EndpointsObject & EndpointSliceObject> = object ?? {};
  return [
    ...(subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)),
    ...(endpoints ?? []).flatMap(({ addresses }) => addresses),
  ].map((text) => canonicalAddress(text) ?? text);
}

/** Returns what Endpoints or an EndpointSlice publish: ` with 10.0.0.1, 10.0.0.2 :6443`; nothing for another object. */
export function describePublished(object: KubernetesObject): string {
  if (object.kind !== 'Endpoints' && object.kind !== 'EndpointSlice') return '';
  const { subsets, ports }: Partial<EndpointsObject & EndpointSliceObject> = object;
  const addresses = addressesIn(object);
  if (addresses.length === 0) return ' with no address';
  const found = subsets?.[0]?.ports ?? ports ?? [];
  return ` with ${addresses.join(', ')}${found.map(({ port }) => ` :${port}`).join('')}`;
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
