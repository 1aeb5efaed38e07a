import type { EndpointPort, EndpointSliceObject, EndpointsObject } from '../../lib/cluster/published-objects.ts';

export const HTTPS: EndpointPort = { name: 'https', port: 6443, protocol: 'TCP' };

const METADATA = { namespace: 'default', name: 'kubernetes' };

/** Returns the correct Endpoints of the kubernetes Service for these addresses. */
export function anEndpoints(addresses: readonly string[], ports: readonly EndpointPort[] = [HTTPS]): EndpointsObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...METADATA, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: addresses.length === 0 ? [] : [{ addresses: addresses.map((ip) => ({ ip })), ports }],
  };
}

/** Returns the EndpointSlice that mirrors the Endpoints of these addresses. */
export function aSlice(addresses: readonly string[], ports: readonly EndpointPort[] = [HTTPS]): EndpointSliceObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...METADATA, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: addresses.length === 0 ? [] : ports,
  };
}
