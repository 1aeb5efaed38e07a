import { familyOf } from '../allocator/ip-address.ts';
import {
  type EndpointAddress,
  type EndpointSliceObject,
  type EndpointsObject,
  MANAGED_BY_LABEL,
  SERVICE_NAME_LABEL,
  type SliceEndpoint,
  sameJson,
} from './objects.ts';

/** A write of the slice; `replace` deletes `object` and creates `replacement`, because an address type cannot change. */
export type SliceWrite =
  | { readonly verb: 'create'; readonly object: EndpointSliceObject }
  | { readonly verb: 'update'; readonly object: EndpointSliceObject }
  | { readonly verb: 'delete'; readonly object: EndpointSliceObject }
  | { readonly verb: 'replace'; readonly object: EndpointSliceObject; readonly replacement: EndpointSliceObject };

/**
 * The EndpointSlice that mirrors the first subset of the Endpoints (`endpointSliceFromEndpoints` of
 * `pkg/controlplane/reconcilers/endpointsadapter.go`): one family, IPv6 only when every address is.
 */
export function sliceFromEndpoints(endpoints: EndpointsObject): EndpointSliceObject {
  const { name, namespace = 'default' } = endpoints.metadata;
  const subset = endpoints.subsets?.[0];
  const ready = subset?.addresses ?? [];
  const notReady = subset?.notReadyAddresses ?? [];
  const addressType = allIPv6([...ready, ...notReady]) ? 'IPv6' : 'IPv4';
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

/**
 * Returns the write that makes `current` the slice of these Endpoints; undefined if it is. Keeps unknown fields of `current`.
 * @param prune replaces a slice of another manager too
 */
export function ensureSlice(
  endpoints: EndpointsObject,
  current: EndpointSliceObject | undefined,
  prune = false,
): SliceWrite | undefined {
  return sliceWrite(sliceFromEndpoints(endpoints), current, prune);
}

export function sliceWrite(
  desired: EndpointSliceObject,
  current: EndpointSliceObject | undefined,
  prune = false,
): SliceWrite | undefined {
  if (current === undefined) return { verb: 'create', object: desired };
  const found = { ...current, apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' };
  if (current.addressType !== desired.addressType) {
    const manager = current.metadata.labels?.[MANAGED_BY_LABEL];
    const foreign = !prune && manager !== undefined && manager !== desired.metadata.labels?.[MANAGED_BY_LABEL];
    return foreign ? undefined : { verb: 'replace', object: found, replacement: desired };
  }

  const { labels } = desired.metadata;
  const satisfied =
    sameJson(current.endpoints ?? [], desired.endpoints) &&
    sameJson(current.ports ?? [], desired.ports) &&
    sameJson(current.metadata.labels, labels);
  if (satisfied) return undefined;
  const { endpoints: sliceEndpoints, ports } = desired;
  const metadata = { ...current.metadata, ...(labels && { labels }) };
  return {
    verb: 'update',
    object: { ...found, metadata, ...(sliceEndpoints && { endpoints: sliceEndpoints }), ...(ports && { ports }) },
  };
}

export function sliceAddresses(slice: EndpointSliceObject | undefined): string[] {
  return (slice?.endpoints ?? []).flatMap(({ addresses }) => addresses);
}

function sliceEndpoint({ ip, targetRef, nodeName }: EndpointAddress, ready: boolean): SliceEndpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(targetRef !== undefined && { targetRef }),
    ...(nodeName !== undefined && { nodeName }),
  };
}

function allIPv6(addresses: readonly EndpointAddress[]): boolean {
  return addresses.length > 0 && addresses.every(({ ip }) => isIPv6(ip));
}

function isIPv6(ip: string): boolean {
  return familyOf(ip) === 'IPv6';
}
