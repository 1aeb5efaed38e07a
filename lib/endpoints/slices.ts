import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
import { FIELD_MANAGER } from '../cluster/kubernetes-objects.ts';
import {
  type EndpointAddress,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  MANAGED_BY_LABEL,
  publishedFamilies,
  SERVICE_NAME_LABEL,
  type SliceEndpoint,
  sameJson,
  sliceRef,
} from '../cluster/published-objects.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { defined } from '../util/values.ts';
import { endpointPorts } from './kubernetes-service.ts';

export function isOwnSecondSlice({ metadata }: EndpointSliceObject): boolean {
  const isNamed = [sliceRef('IPv4'), sliceRef('IPv6')].some(({ name }) => name === metadata.name);
  return isNamed && metadata.labels?.[MANAGED_BY_LABEL] === FIELD_MANAGER;
}

/** Returns the slice that publishes these addresses. The slice of the second family is named `kubernetes-<family>`. */
export function sliceOfFamily(spec: ClusterSpec, family: IPFamily, addresses: readonly string[]): EndpointSliceObject {
  const { namespace, name } = sliceRef(family);
  const ports = endpointPorts(spec);
  const subsets = [{ addresses: addresses.map((ip) => ({ ip })), ports }];
  const slice = sliceFromEndpoints({ metadata: { ...KUBERNETES_SERVICE }, subsets });
  if (publishedFamilies(spec)[0].family === family) return slice;
  const labels = { ...slice.metadata.labels, [MANAGED_BY_LABEL]: FIELD_MANAGER };
  return { ...slice, metadata: { namespace, name, labels }, addressType: family };
}

/** Returns the EndpointSlice of the first subset (upstream: `endpointSliceFromEndpoints`). It is IPv6 if every address is IPv6. */
export function sliceFromEndpoints(endpoints: EndpointsObject): EndpointSliceObject {
  const { name, namespace = 'default' } = endpoints.metadata;
  const subset = endpoints.subsets?.[0];
  const ready = subset?.addresses ?? [];
  const notReady = subset?.notReadyAddresses ?? [];
  const all = [...ready, ...notReady];
  const addressType = all.length > 0 && all.every(({ ip }) => isIPv6(ip)) ? 'IPv6' : 'IPv4';
  const ofThisType = ({ ip }: EndpointAddress) => isIPv6(ip) === (addressType === 'IPv6');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels: { [SERVICE_NAME_LABEL]: name } },
    addressType,
    endpoints: [
      ...ready.filter(ofThisType).map((address) => sliceEndpoint(address, true)),
      ...notReady.filter(ofThisType).map((address) => sliceEndpoint(address, false)),
    ],
    ports: (subset?.ports ?? []).map(({ name: portName = '', port, protocol = 'TCP' }) => ({
      name: portName,
      protocol,
      port,
    })),
  };
}

/** A write of a slice. The address type of a slice cannot change, so `replace` deletes the slice. A `create` follows. */
export interface SliceWrite {
  readonly verb: 'create' | 'update' | 'delete' | 'replace';
  readonly object: EndpointSliceObject;
}

/** Returns the writes that turn `current` into the desired slice. With `prune`, writes may replace a slice of another manager. */
export function sliceWrites(
  desired: EndpointSliceObject,
  current: EndpointSliceObject | undefined,
  prune = false,
): readonly SliceWrite[] {
  if (current === undefined) return [{ verb: 'create', object: desired }];
  const { labels } = desired.metadata;
  if (current.addressType !== desired.addressType) {
    const manager = current.metadata.labels?.[MANAGED_BY_LABEL];
    if (!prune && manager !== undefined && manager !== labels?.[MANAGED_BY_LABEL]) return [];
    return [
      { verb: 'replace', object: current },
      { verb: 'create', object: desired },
    ];
  }

  const satisfied =
    sameJson(current.endpoints ?? [], desired.endpoints) &&
    sameJson(current.ports ?? [], desired.ports) &&
    sameJson(current.metadata.labels, labels);
  if (satisfied) return [];
  const { endpoints, ports } = desired;
  const metadata = { ...current.metadata, ...defined({ labels }) };
  return [{ verb: 'update', object: { ...current, metadata, ...defined({ endpoints, ports }) } }];
}

function sliceEndpoint({ ip, targetRef, nodeName }: EndpointAddress, ready: boolean): SliceEndpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...defined({ targetRef, nodeName }),
  };
}

function isIPv6(ip: string): boolean {
  return familyOf(ip) === 'IPv6';
}
