import { canonicalAddress, formatAddress, formatIPv4, parseAddress, parseIPv4 } from './ip-address.ts';
import { type Network, networkOf, rangeSize } from './network.ts';
import { type PickIndex, RangeAllocator, type RangeKind, reservedAddresses } from './range-allocator.ts';
import { isRefused, type Refusal, refused } from './refusal.ts';

/** Only the first addresses of an IPv6 network have a bit: at most this many minus one, because the network address has none. */
const MOST_IPV6_ADDRESSES = 65_536;

/**
 * Returns the range of the cluster IPs of one network (`pkg/registry/core/service/ipallocator/bitmap.go`):
 *
 *     10.0.0.0/24      .0        .1 ... .16        .17 ... .254       .255
 *                   network    reserved band     dynamic band      broadcast
 *     bit                       0 ... 15          16 ... 253
 *
 * IPv6 has no broadcast address, and its bits cover at most 65,535 addresses.
 */
export function ipRangeOf(cidr: string, pick: PickIndex): RangeAllocator | Refusal {
  const network = networkOf(cidr);
  return isRefused(network) ? network : new RangeAllocator(addressesOf(network), pick);
}

/** Returns upstream's refusal of an address outside the range. The message contains the address in canonical form. */
export function ipNotInRange(address: string, spec: string): Refusal {
  const shown = canonicalAddress(address) ?? address;
  return refused(
    'NotInRange',
    `the provided IP (${shown}) is not in the valid range. The range of valid IPs is ${spec}`,
  );
}

export function ipAlreadyAllocated(): Refusal {
  return refused('AlreadyAllocated', 'provided IP is already allocated');
}

function addressesOf(network: Network): RangeKind {
  const numbering = network.family === 'IPv4' ? ipv4Numbering(network) : ipv6Numbering(network);
  const max = usableAddresses(network);
  return {
    spec: network.text,
    max,
    reserved: reservedAddresses(Number(rangeSize(network))),
    indexOf: (address) => {
      const index = numbering.numberOf(address) - 1;
      return index >= 0 && index < max ? index : undefined;
    },
    itemAt: (index) => numbering.addressAt(index + 1),
    notInRange: (address) => ipNotInRange(address, network.text),
    alreadyAllocated: ipAlreadyAllocated,
  };
}

function usableAddresses(network: Network): number {
  const size = Number(rangeSize(network));
  return Math.max(0, network.family === 'IPv4' ? size - 2 : Math.min(size, MOST_IPV6_ADDRESSES) - 1);
}

/** Converts the addresses of a network to numbers from 0, and back. Must be fast, because a repair converts all cluster IPs. */
function ipv4Numbering(network: Network) {
  const base = Number(network.base);
  return {
    /** Returns the number of an address inside or outside the network; NaN if `address` is not an address of this family. */
    numberOf(address: string): number {
      const value = parseIPv4(address);
      return value === undefined ? anyNumberOf(network, address) : value - base;
    },
    addressAt: (number: number) => formatIPv4(base + number),
  };
}

/** Avoids 128-bit integers if an address differs from the network address only in the last group. This is 20 times as fast. */
function ipv6Numbering(network: Network): ReturnType<typeof ipv4Numbering> {
  const firstOfGroup = (network.base >> 16n) << 16n;
  const beforeLastGroup = formatAddress({ family: 'IPv6', value: firstOfGroup + 1n }).slice(0, -1);
  const base = Number(network.base - firstOfGroup);
  return {
    numberOf(address) {
      const group = address.startsWith(beforeLastGroup) ? address.slice(beforeLastGroup.length) : '';
      return /^[0-9a-f]{1,4}$/.test(group) ? Number.parseInt(group, 16) - base : anyNumberOf(network, address);
    },
    addressAt(number) {
      const group = base + number;
      if (group > 0 && group <= 0xffff) return beforeLastGroup + group.toString(16);
      return formatAddress({ family: 'IPv6', value: network.base + BigInt(number) });
    },
  };
}

function anyNumberOf(network: Network, text: string): number {
  const address = parseAddress(text);
  return address?.family === network.family ? Number(address.value - network.base) : Number.NaN;
}
