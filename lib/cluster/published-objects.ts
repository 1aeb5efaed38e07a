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
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { isRecord } from '../util/values.ts';
import type { FromJson, KubernetesObject, WholeObject } from './kubernetes-objects.ts';

/** The Service that every cluster has. Its Endpoints and its EndpointSlice have the same name. */
export const KUBERNETES_SERVICE = { namespace: 'default', name: 'kubernetes' } as const;
export const SERVICE_REF = { kind: 'Service', ...KUBERNETES_SERVICE } as const;
export const ENDPOINTS_REF = { kind: 'Endpoints', ...KUBERNETES_SERVICE } as const;
/** The default ServiceCIDR, which exists in Kubernetes 1.33 and later. */
export const SERVICE_CIDR_REF = { kind: 'ServiceCIDR', name: KUBERNETES_SERVICE.name } as const;
export const SLICE_REF = { kind: 'EndpointSlice', ...KUBERNETES_SERVICE } as const;

/** This label prevents the mirroring controller of Kubernetes from creating another EndpointSlice from our Endpoints. */
export const SKIP_MIRROR_LABEL = 'endpointslice.kubernetes.io/skip-mirror';
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';

export type EndpointAddress = FromJson<V1EndpointAddress>;
export type EndpointPort = FromJson<CoreV1EndpointPort>;
export type EndpointSubset = FromJson<V1EndpointSubset>;
export type EndpointsObject = WholeObject<V1Endpoints>;
export type SliceEndpoint = FromJson<V1Endpoint>;
export type ServicePort = FromJson<V1ServicePort>;

/** An EndpointSlice. The lists may be `null`, because Go writes `null` for an empty list. */
export interface EndpointSliceObject extends Omit<WholeObject<V1EndpointSlice>, 'endpoints' | 'ports'> {
  readonly endpoints?: readonly SliceEndpoint[] | null;
  readonly ports?: readonly EndpointPort[] | null;
}

export interface ServiceObject extends WholeObject<V1Service> {
  readonly spec: FromJson<V1ServiceSpec>;
}

export interface ServiceCidrObject extends WholeObject<V1ServiceCIDR> {
  /** One range, or one range of each family. */
  readonly spec: { readonly cidrs: readonly string[] };
}

/** Returns the ServiceCIDR that API servers create from `--service-cluster-ip-range`. */
export function defaultServiceCidr({ serviceClusterIPRanges }: ClusterSpec): ServiceCidrObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: SERVICE_CIDR_REF.name },
    spec: { cidrs: serviceClusterIPRanges },
  };
}

export function sliceRef(family: IPFamily) {
  const { namespace, name } = KUBERNETES_SERVICE;
  return { kind: 'EndpointSlice', namespace, name: `${name}-${family.toLowerCase()}` } as const;
}

/**
 * The objects that publish one family. The first family has Endpoints and a slice that mirrors them; the second has only a
 * slice. A missing object is `undefined`; the key of an object that could not be read is absent.
 */
export interface PublishedObjects {
  readonly Endpoints?: EndpointsObject | undefined;
  readonly EndpointSlice?: EndpointSliceObject | undefined;
}

/** A published address family. The endpoints of each family are decided independently. */
export interface PublishedFamily {
  readonly family: IPFamily;
  /** Returns true for an address of the family. If only one family is published, returns true for every address. */
  readonly isOf: (address: string) => boolean;
  /** The references of the family's objects, by kind. Passes write the objects in this order. */
  readonly refs: { readonly Endpoints?: typeof ENDPOINTS_REF; readonly EndpointSlice: SliceRef };
}

export interface ReadFamily extends PublishedFamily {
  readonly objects: PublishedObjects;
}

type SliceRef = typeof SLICE_REF | ReturnType<typeof sliceRef>;

/** Returns the published families: the family of the primary range, and with `PreferDualStack` the second family. */
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

/** Returns the ready addresses of Endpoints or an EndpointSlice in canonical form, because writers may spell them differently. */
export function addressesIn(object: EndpointsObject | EndpointSliceObject | undefined): string[] {
  const { subsets, endpoints }: Partial<EndpointsObject & EndpointSliceObject> = object ?? {};
  return [
    ...(subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)),
    ...(endpoints ?? []).flatMap(({ addresses = [], conditions }) => (conditions?.ready === false ? [] : addresses)),
  ].map((text) => canonicalAddress(text) ?? text);
}

/** Describes the addresses of Endpoints or a slice: ` with 10.0.0.1, 10.0.0.2 :6443`. Returns an empty text for other kinds. */
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

export function portText({ name = '', port, protocol = 'TCP', appProtocol }: EndpointPort): string {
  return JSON.stringify([name, port, protocol, appProtocol]);
}

/** Returns whether the API server treats two values as equal. Ignores the order of fields; absent and empty fields are equal. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other || (isNothing(one) && isNothing(other))) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => sameJson(item, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...fields].every((field) => sameJson(one[field], other[field]));
}

/** Returns whether the API server treats the value like an absent field. */
export function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
