import { type IPFamily, parseAddress } from '../allocator/ip-address.ts';
import {
  countBefore,
  hostBits,
  isWithin,
  type Network,
  sizeOf,
  usableIntervals,
  usableOf,
  usableSize,
} from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import { type ServiceCidrUsage, USAGE_CELLS } from '../cluster/service-cidr-usage.ts';

interface Cidr {
  readonly name: string;
  readonly networks: readonly Network[];
  readonly ready: boolean;
}

/** The maximum number of networks in a run record. More networks would make the record too large. */
const MOST_NETWORKS = 16;

/**
 * Returns in `networks` the usage of the default ServiceCIDR (the first) and of the fullest other ServiceCIDRs. Returns in `sums`
 * the usage of all ready ServiceCIDRs of each family.
 */
export function serviceCidrUsage(cidrs: readonly Cidr[], taken: Iterable<string>): ServiceCidrUsage {
  const values = sortedValues(taken);
  const networks = cidrs.flatMap(({ name, networks: own, ready }) =>
    own.map((network) => ({ name, network, ready, ...partOf(values[network.family], network) })),
  );
  const share = ({ network, from, to }: (typeof networks)[number]) => (to - from) / Math.max(1, usableSize(network));
  const defaults = networks.slice(0, cidrs[0]?.networks.length ?? 0);
  const others = networks.slice(defaults.length).sort((one, other) => share(other) - share(one));
  const families = new Set(networks.map(({ network }) => network.family));
  return {
    sums: [...families].map((family) => sumOf(family, cidrs, values[family])),
    networks: [...defaults, ...others].slice(0, MOST_NETWORKS).map(({ name, network, ready, from, to }) => ({
      name,
      cidr: network.text,
      ready,
      used: to - from,
      cells: cellsOf(network, values[network.family].slice(from, to)),
    })),
  };
}

export function fullFamilies({ sums, networks }: ServiceCidrUsage): Finding[] {
  return sums.flatMap(({ family, capacity, used }): Finding[] => {
    if (used < capacity) return [];
    const texts = networks.filter(({ cidr, ready }) => ready && cidr.includes(':') === (family === 'IPv6'));
    const names = texts.map(({ cidr }) => cidr).join(', ') || `${family}, none of which is ready`;
    const message = `nothing is free in the ServiceCIDRs ${names}, which have room for ${capacity}; create another ServiceCIDR to create new Services`;
    return [{ type: 'nothingFree', message }];
  });
}

type Values = Readonly<Record<IPFamily, readonly bigint[]>>;

/** Returns the addresses of each family as numbers, without duplicates and in ascending order. */
function sortedValues(taken: Iterable<string>): Values {
  const values = { IPv4: new Set<bigint>(), IPv6: new Set<bigint>() };
  for (const text of taken) {
    const address = parseAddress(text);
    if (address !== undefined) values[address.family].add(address.value);
  }
  const sorted = (set: Set<bigint>) => [...set].sort((one, other) => (one < other ? -1 : 1));
  return { IPv4: sorted(values.IPv4), IPv6: sorted(values.IPv6) };
}

/** Returns the part of `values` that is in a network, as indexes, because copies for many networks would be large. */
function partOf(values: readonly bigint[], network: Network): { readonly from: number; readonly to: number } {
  const { first, last } = usableOf(network);
  const from = countBefore(values, (value) => value < first);
  const end = countBefore(values, (value) => value <= last);
  return { from, to: Math.max(from, end) };
}

/** Returns the usage of the ready ServiceCIDRs of a family. An address that is in several of them counts once. */
function sumOf(family: IPFamily, cidrs: readonly Cidr[], values: readonly bigint[]): ServiceCidrUsage['sums'][number] {
  const all = cidrs.flatMap(({ networks }) => networks).filter((network) => network.family === family);
  const ready = cidrs.flatMap((cidr) => (cidr.ready ? cidr.networks : []));
  const intervals = usableIntervals(ready, family);
  const used = values.filter((value) => isWithin(intervals, value)).length;
  return { family, networks: all.length, used, capacity: sizeOf(intervals) };
}

/** Returns the usage of each part of a network, as one digit from 0 (unused) to 4 (more than ¾ used). */
function cellsOf(network: Network, values: readonly bigint[]): string {
  const bits = hostBits(network);
  const shift = Math.max(0, bits - Math.log2(USAGE_CELLS));
  const used = new Array<number>(2 ** (bits - shift)).fill(0);
  for (const value of values) {
    const cell = Number((value - network.base) >> BigInt(shift));
    used[cell] = (used[cell] ?? 0) + 1;
  }
  return used.map((count) => Math.min(4, Math.ceil((4 * count) / 2 ** shift))).join('');
}
