import { type Address, addressOf, formatAddress, type IPFamily, parseIPv4, parseIPv6 } from './ip-address.ts';
import { type Refusal, refused } from './refusal.ts';

/** A CIDR. `base` is its first address. */
export interface Network {
  readonly family: IPFamily;
  readonly base: bigint;
  readonly prefixLength: number;
  /** The canonical text, such as `10.0.0.0/24` or `fd00::/112`. */
  readonly text: string;
}

/**
 * Parses a CIDR as Go's `net.ParseCIDR` does. For example, `10.0.0.7/24` is the network 10.0.0.0/24. A network of IPv4-mapped
 * addresses is an IPv4 network.
 */
export function parseCidr(text: string): Network | undefined {
  const [, addressText = '', length] = /^([^/]*)\/(\d+)$/.exec(text) ?? [];
  const isIPv4 = parseIPv4(addressText) !== undefined;
  const ipv6 = parseIPv6(isIPv4 ? `::ffff:${addressText}` : addressText);
  const ipv6Length = Number(length) + (isIPv4 ? 96 : 0);
  if (ipv6 === undefined || ipv6Length > 128) return undefined;
  const base = mask(ipv6, 128 - ipv6Length);
  const { family, value } = ipv6Length < 96 ? ({ family: 'IPv6', value: base } as const) : addressOf(base);
  const prefixLength = family === 'IPv4' ? ipv6Length - 96 : ipv6Length;
  return { family, base: value, prefixLength, text: `${formatAddress({ family, value })}/${prefixLength}` };
}

/** Parses a CIDR, or returns upstream's error. */
export function networkOf(text: string): Network | Refusal {
  return parseCidr(text) ?? refused('Unparsable', `invalid CIDR address: ${text}`);
}

export function networkContains(network: Network, address: Address): boolean {
  return address.family === network.family && mask(address.value, hostBits(network)) === network.base;
}

export function containsNetwork(outer: Network, inner: Network): boolean {
  const first: Address = { family: inner.family, value: inner.base };
  return outer.prefixLength <= inner.prefixLength && networkContains(outer, first);
}

export function hostBits(network: Network): number {
  return widthOf(network.family) - network.prefixLength;
}

/**
 * Returns the number of addresses as `RangeSize` of `k8s.io/utils/net` does: 0 for IPv4 networks with 31 or more host bits
 * and IPv6 networks with 127 or more, and at most 2^63 - 1.
 */
export function rangeSize(network: Network): bigint {
  const bits = hostBits(network);
  if (bits >= widthOf(network.family) - 1) return 0n;
  return bits >= 63 ? 2n ** 63n - 1n : 1n << BigInt(bits);
}

/** Returns true for an address in the network, except the network address and the broadcast address of IPv4. */
export function isUsableIn(network: Network, { family, value }: Address): boolean {
  const { first, last } = usableOf(network);
  return family === network.family && value >= first && value <= last;
}

export interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

/** Returns the usable addresses. If the network has no usable address, `first` is greater than `last`. */
export function usableOf({ family, base, prefixLength }: Network): Interval {
  const end = base + (1n << BigInt(widthOf(family) - prefixLength));
  return { first: base + 1n, last: end - (family === 'IPv4' ? 2n : 1n) };
}

/**
 * Returns the usable addresses of the networks of a family, as ascending intervals that do not overlap. For 10.0.0.0/24 and
 * 10.0.0.128/25, returns 10.0.0.1 to 10.0.0.254, because 10.0.0.128 is usable in the first network.
 */
export function usableIntervals(networks: readonly Network[], family: IPFamily): readonly Interval[] {
  const usable = networks
    .filter((network) => network.family === family)
    .map(usableOf)
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

/** Returns, by binary search, how many elements satisfy `isBefore`. These elements must come first in `sorted`. */
export function countBefore<Element>(sorted: readonly Element[], isBefore: (element: Element) => boolean): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isBefore(sorted[middle] as Element)) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function isWithin(intervals: readonly Interval[], value: bigint): boolean {
  const interval = intervals[countBefore(intervals, ({ last }) => last < value)];
  return interval !== undefined && interval.first <= value;
}

/** Returns the number of usable addresses of a network, capped at `Number.MAX_SAFE_INTEGER`. */
export function usableSize(network: Network): number {
  return sizeOf(usableIntervals([network], network.family));
}

/** Returns the number of addresses in the intervals, capped at `Number.MAX_SAFE_INTEGER`. */
export function sizeOf(intervals: readonly Interval[]): number {
  const size = intervals.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
  return Math.min(Number(size), Number.MAX_SAFE_INTEGER);
}

function widthOf(family: IPFamily): 32 | 128 {
  return family === 'IPv4' ? 32 : 128;
}

function mask(value: bigint, hostBitCount: number): bigint {
  return (value >> BigInt(hostBitCount)) << BigInt(hostBitCount);
}

/* The predicates of Go's `net.IP`. Their networks are parsed once, because a name server may return thousands of addresses. */

export const isUnspecified = within('0.0.0.0/32', '::/128');
export const isLoopback = within('127.0.0.0/8', '::1/128');
export const isLinkLocal = within('169.254.0.0/16', 'fe80::/10');
export const isLinkLocalMulticast = within('224.0.0.0/24', 'ff02::/16');
export const isMulticast = within('224.0.0.0/4', 'ff00::/8');
const isBroadcast = within('255.255.255.255/32');

/** Returns true for a global unicast address. As in Go, private addresses are global unicast addresses. */
export function isGlobalUnicast(address: Address): boolean {
  return ![isUnspecified, isLoopback, isMulticast, isLinkLocal, isBroadcast].some((isOfKind) => isOfKind(address));
}

/** Returns a function that checks whether an address is in one of these networks. */
export function within(...cidrs: readonly string[]): (address: Address) => boolean {
  const networks = cidrs.map(parseCidr).filter((network) => network !== undefined);
  return (address) => networks.some((network) => networkContains(network, address));
}
