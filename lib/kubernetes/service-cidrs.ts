import { parseAddress } from '../allocator/ip-address.ts';
import { isUsableIn, type Network, parseCidr } from '../allocator/network.ts';
import { KUBERNETES_SERVICE, type ServiceCidrObject } from '../endpoints/objects.ts';
import { ClusterError, type ClusterPort } from './cluster-port.ts';

/** A ServiceCIDR: API servers allocate cluster IPs from every one of the cluster. */
export interface ServiceCidr {
  readonly name: string;
  /** One range, or one of each family. */
  readonly networks: readonly Network[];
}

/**
 * Returns every ServiceCIDR, the default one first; none where the API server does not serve the kind (before Kubernetes
 * 1.33). `undefined`: the kubeconfig's user may not list them.
 */
export async function listServiceCidrs(kubernetes: ClusterPort): Promise<readonly ServiceCidr[] | undefined> {
  const objects = await kubernetes.list<ServiceCidrObject>('ServiceCIDR', undefined).catch(noneOrUnknown);
  const cidrs = objects?.map(({ metadata: { name }, spec }) => ({
    name,
    networks: spec.cidrs.map(parseCidr).filter((network) => network !== undefined),
  }));
  return cidrs?.sort((one, other) => Number(isDefault(other)) - Number(isDefault(one)));
}

function noneOrUnknown(error: unknown): [] | undefined {
  if (error instanceof ClusterError && error.code === 'Rejected') return [];
  if (error instanceof ClusterError && error.code === 'Forbidden') return undefined;
  throw error;
}

/** Whether it is the one that the API servers create from their flag. */
export function isDefault({ name }: ServiceCidr): boolean {
  return name === KUBERNETES_SERVICE.name;
}

/** Whether API servers may have allocated the address. They may where the ServiceCIDRs are unknown. */
export function isServed(cidrs: readonly ServiceCidr[] | undefined, text: string): boolean {
  if (cidrs === undefined) return true;
  const address = parseAddress(text);
  return (
    address !== undefined && cidrs.some(({ networks }) => networks.some((network) => isUsableIn(network, address)))
  );
}
