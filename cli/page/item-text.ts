import { addressOf, formatAddress, formatIPv4, parseIPv4, parseIPv6 } from '../../lib/allocator/ip-address.ts';

/** The items of a range by number: 0 is its first. */
export interface ItemTexts {
  /** As a number in hexadecimal, for the page's script. */
  readonly base: string;
  readonly kind: 'ipv4' | 'ipv6' | 'port';
  at(index: number): string;
}

/** Of a range whose first item is `first`: `10.0.0.0`, `fd00::`, `30000`. */
export function itemTexts(first: string): ItemTexts {
  const ipv4 = parseIPv4(first);
  if (ipv4 !== undefined) return { base: hex(ipv4), kind: 'ipv4', at: (index) => formatIPv4(ipv4 + index) };
  const ipv6 = parseIPv6(first);
  if (ipv6 !== undefined) {
    return { base: hex(ipv6), kind: 'ipv6', at: (index) => formatAddress(addressOf(ipv6 + BigInt(index))) };
  }
  const port = Number.parseInt(first, 10) || 0;
  return { base: hex(port), kind: 'port', at: (index) => String(port + index) };
}

function hex(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
