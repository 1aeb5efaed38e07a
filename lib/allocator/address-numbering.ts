import { formatAddress, formatIPv4, parseAddress, parseIPv4 } from './ip-address.ts';
import type { Network } from './network.ts';

/** The addresses of a network by number: 0 is the network's own. Quick, since a repair pass asks it of every Service. */
export interface AddressNumbering {
  /** NaN for what is no address, or of the other family. Any number when the address is outside. */
  numberOf(address: string): number;
  /** Canonical text. */
  addressAt(number: number): string;
}

export function addressNumbering(network: Network): AddressNumbering {
  return network.family === 'IPv4' ? ipv4Numbering(network) : ipv6Numbering(network);
}

function ipv4Numbering(network: Network): AddressNumbering {
  const base = Number(network.base);
  return {
    numberOf(address) {
      const value = parseIPv4(address);
      return value === undefined ? anyNumberOf(network, address) : value - base;
    },
    addressAt: (number) => formatIPv4(base + number),
  };
}

/**
 * The canonical texts of addresses that differ only in their last group, and have it other than 0, differ only in
 * their last group: for those no number of 128 bits is made.
 */
function ipv6Numbering(network: Network): AddressNumbering {
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
