import { parseAddress } from '../allocator/ip-address.ts';
import { isWithin, type Network, parseCidr, usableIntervals } from '../allocator/network.ts';
import { KUBERNETES_SERVICE, type ServiceCidrObject } from '../cluster/published-objects.ts';
import { ClusterError, type ClusterPort } from './cluster-port.ts';

/** A ServiceCIDR. API servers allocate cluster IPs from all ready ServiceCIDRs of their cluster. */
export interface ServiceCidr {
  readonly name: string;
  readonly networks: readonly Network[];
  /** True if API servers allocate from this object: it is not being deleted, and its condition Ready is true or absent. */
  readonly ready: boolean;
}

/** Returns all ServiceCIDRs, the default first; no items before Kubernetes 1.33; `undefined` if the user may not list them. */
export async function listServiceCidrs(kubernetes: ClusterPort): Promise<readonly ServiceCidr[] | undefined> {
  const objects = await kubernetes.list<ServiceCidrObject>('ServiceCIDR', undefined).catch(noneOrUnknown);
  const cidrs = objects?.map(({ metadata: { name, deletionTimestamp }, spec, status }) => ({
    name,
    networks: spec.cidrs.map(parseCidr).filter((network) => network !== undefined),
    ready:
      deletionTimestamp === undefined &&
      (status?.conditions ?? []).every((one) => one.type !== 'Ready' || one.status === 'True'),
  }));
  return cidrs?.sort((one, other) => Number(isDefault(other)) - Number(isDefault(one)));
}

function noneOrUnknown(error: unknown): [] | undefined {
  if (error instanceof ClusterError && error.code === 'Rejected') return [];
  if (error instanceof ClusterError && error.code === 'Forbidden') return undefined;
  throw error;
}

/** Returns true for the ServiceCIDR that API servers create from `--service-cluster-ip-range`. */
export function isDefault({ name }: ServiceCidr): boolean {
  return name === KUBERNETES_SERVICE.name;
}

/** Returns a function that checks whether API servers may have allocated an address. Without `cidrs`, it returns true. */
export function servedAddresses(
  cidrs: readonly Pick<ServiceCidr, 'networks'>[] | undefined,
): (text: string) => boolean {
  if (cidrs === undefined) return () => true;
  const networks = cidrs.flatMap((cidr) => cidr.networks);
  const ofFamily = { IPv4: usableIntervals(networks, 'IPv4'), IPv6: usableIntervals(networks, 'IPv6') };
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && isWithin(ofFamily[address.family], address.value);
  };
}
