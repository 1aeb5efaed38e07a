import { familyOf } from '../../lib/allocator/ip-address.ts';
import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';

/* The objects of a cluster whose API servers allocate, as an API server stores them. */

const NETWORKING = 'networking.k8s.io/v1';

export const MANAGED = 'ipallocator.k8s.io';

/** The labels of the IPAddress of an IPv4 address. */
export const IPV4_LABELS = {
  'ipaddress.kubernetes.io/ip-family': 'IPv4',
  'ipaddress.kubernetes.io/managed-by': MANAGED,
};

export function stockCidr(...cidrs: readonly string[]) {
  return { apiVersion: NETWORKING, kind: 'ServiceCIDR', metadata: { name: 'kubernetes' }, spec: { cidrs } };
}

/** Returns a Service of the namespace "a". */
export function stockService(name: string, ...clusterIPs: readonly string[]): KubernetesObject {
  const spec = { type: 'ClusterIP', clusterIP: clusterIPs[0], clusterIPs };
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'a', name }, ...{ spec } };
}

export interface IPAddressObject extends KubernetesObject {
  readonly spec: {
    readonly parentRef: {
      readonly group: string;
      readonly resource: string;
      readonly namespace: string;
      readonly name: string;
    };
  };
}

/** Returns the IPAddress of an address. @param parent the namespace and name of its Service */
export function stockRecord(address: string, parent: string): IPAddressObject {
  const [namespace = '', name = ''] = parent.split('/');
  const labels = { [FAMILY_LABEL]: familyOf(address) ?? '', [ADDRESS_MANAGED_BY_LABEL]: MANAGED };
  const spec = { parentRef: { group: '', resource: 'services', namespace, name } };
  return { apiVersion: NETWORKING, kind: 'IPAddress', metadata: { name: address, labels }, spec };
}
