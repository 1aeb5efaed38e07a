import type { Address } from '../allocator/ip-address.ts';
import { networkContains, parseCidr } from '../allocator/network.ts';

/** What an address is for (the predicates of Go's `net.IP`). */
export function isUnspecified(address: Address): boolean {
  return address.value === 0n;
}

export function isLoopback(address: Address): boolean {
  return isIn(address, '127.0.0.0/8', '::1/128');
}

export function isLinkLocal(address: Address): boolean {
  return isIn(address, '169.254.0.0/16', 'fe80::/10');
}

export function isLinkLocalMulticast(address: Address): boolean {
  return isIn(address, '224.0.0.0/24', 'ff02::/16');
}

export function isMulticast(address: Address): boolean {
  return isIn(address, '224.0.0.0/4', 'ff00::/8');
}

/** None of the above, nor the IPv4 broadcast address. Private ranges qualify. */
export function isGlobalUnicast(address: Address): boolean {
  return !(
    isUnspecified(address) ||
    isLoopback(address) ||
    isMulticast(address) ||
    isLinkLocal(address) ||
    isIn(address, '255.255.255.255/32')
  );
}

function isIn(address: Address, ...networks: readonly string[]): boolean {
  return networks.map(parseCidr).some((network) => network !== undefined && networkContains(network, address));
}
