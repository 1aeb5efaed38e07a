import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { sliceFromEndpoints } from './endpoint-slice.ts';
import { endpointPorts } from './kubernetes-service.ts';
import { type EndpointSliceObject, KUBERNETES_SERVICE, MANAGED_BY_LABEL } from './objects.ts';

const OWN_MANAGER = 'kube-bootstrap-controller';

/** Returns the families that are published: that of the primary range, and with `PreferDualStack` the other one. */
export function publishedFamilies({ serviceClusterIPRanges: ranges, service }: ClusterSpec): readonly IPFamily[] {
  const families = ranges.map((range) => familyOf(range.split('/')[0] ?? '') ?? 'IPv4');
  return service.ipFamilyPolicy === 'PreferDualStack' ? families : families.slice(0, 1);
}

/** Returns the family of the slice besides `kubernetes`; `undefined` if only one family is published. */
export function secondFamily(spec: ClusterSpec): IPFamily | undefined {
  return spec.endpoints.reconciler === 'lease' ? publishedFamilies(spec)[1] : undefined;
}

/**
 * Returns a test of addresses for each family that is decided on its own. A single family accepts every address.
 */
export function familyTests(spec: ClusterSpec): readonly ((address: string) => boolean)[] {
  const families = publishedFamilies(spec);
  return families.length === 1 ? [() => true] : families.map((family) => (address) => familyOf(address) === family);
}

export function sliceRef(family: IPFamily) {
  const { namespace, name } = KUBERNETES_SERVICE;
  return { kind: 'EndpointSlice', namespace, name: `${name}-${family.toLowerCase()}` } as const;
}

/** Whether this project made the slice `kubernetes-<family>`. */
export function isOwnSecondSlice({ metadata }: EndpointSliceObject): boolean {
  const isNamed = [sliceRef('IPv4'), sliceRef('IPv6')].some(({ name }) => name === metadata.name);
  return isNamed && metadata.labels?.[MANAGED_BY_LABEL] === OWN_MANAGER;
}

/** Returns the slice `kubernetes-<family>` that publishes these addresses. */
export function secondSlice(spec: ClusterSpec, family: IPFamily, addresses: readonly string[]): EndpointSliceObject {
  const { namespace, name } = sliceRef(family);
  const ports = endpointPorts(spec);
  const subsets = [{ addresses: addresses.map((ip) => ({ ip })), ports }];
  const slice = sliceFromEndpoints({ metadata: { ...KUBERNETES_SERVICE }, subsets });
  const labels = { ...slice.metadata.labels, [MANAGED_BY_LABEL]: OWN_MANAGER };
  return { ...slice, metadata: { namespace, name, labels }, addressType: family };
}
