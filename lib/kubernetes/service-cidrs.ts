import { type IPFamily, parseAddress } from '../allocator/ip-address.ts';
import { firstUsable, lastUsable, type Network, parseCidr } from '../allocator/network.ts';
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

/** Returns whether API servers may have allocated an address. They may where the ServiceCIDRs are unknown. */
export function servedAddresses(cidrs: readonly ServiceCidr[] | undefined): (text: string) => boolean {
  if (cidrs === undefined) return () => true;
  const networks = cidrs.flatMap((cidr) => cidr.networks);
  const ofFamily = { IPv4: intervalsOf(networks, 'IPv4'), IPv6: intervalsOf(networks, 'IPv6') };
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && isWithin(ofFamily[address.family], address.value);
  };
}

interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

/** The usable addresses of networks: intervals in ascending order that do not overlap. */
function intervalsOf(networks: readonly Network[], family: IPFamily): readonly Interval[] {
  const usable = networks
    .filter((network) => network.family === family)
    .map((network) => ({ first: firstUsable(network), last: lastUsable(network) }))
    .filter(({ first, last }) => first <= last)
    .sort((one, other) => (one.first < other.first ? -1 : Number(one.first > other.first)));
  const merged: Interval[] = [];
  for (const { first, last } of usable) {
    const before = merged.at(-1);
    if (before === undefined || first > before.last) merged.push({ first, last });
    else if (last > before.last) merged[merged.length - 1] = { first: before.first, last };
  }
  return merged;
}

function isWithin(intervals: readonly Interval[], value: bigint): boolean {
  let [from, to] = [0, intervals.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const { first = 0n, last = 0n } = intervals[middle] ?? {};
    if (value < first) to = middle;
    else if (value > last) from = middle + 1;
    else return true;
  }
  return false;
}
