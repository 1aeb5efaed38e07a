import ipaddr from 'ipaddr.js';

export type IPFamily = 'IPv4' | 'IPv6';

/** An address as a number of 32 or 128 bits. The whole program treats an IPv4-mapped IPv6 address as its IPv4 address. */
export interface Address {
  readonly family: IPFamily;
  readonly value: bigint;
}

/** The top 96 bits of `::ffff:a.b.c.d`. */
const MAPPED_PREFIX = 0xffffn;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const LEADING_ZEROS = /(^|:)0+(?=[0-9a-f])/gi;
/** The length of the longest IPv6 text, once leading zeros are removed and a final IPv4 part is converted to groups. */
const LONGEST_IPV6_TEXT = 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'.length;

/**
 * Parses an address as the API server does (`ParseIPSloppy` of `k8s.io/utils/net`). The numbers of an IPv4 address are decimal
 * and may have leading zeros: `010.0.0.1` is 10.0.0.1. An IPv6 address may end with an IPv4 address, and cannot have a zone.
 */
export function parseAddress(text: string): Address | undefined {
  const ipv4 = parseIPv4(text);
  if (ipv4 !== undefined) return { family: 'IPv4', value: BigInt(ipv4) };
  const ipv6 = parseIPv6(text);
  return ipv6 === undefined ? undefined : addressOf(ipv6);
}

export function addressOf(value: bigint): Address {
  return value >> 32n === MAPPED_PREFIX ? { family: 'IPv4', value: value & 0xffffffffn } : { family: 'IPv6', value };
}

/** Returns the canonical text: dotted decimal for IPv4, the form of RFC 5952 for IPv6, such as `fd00::`. */
export function formatAddress(address: Address): string {
  return address.family === 'IPv4' ? formatIPv4(Number(address.value)) : formatIPv6(address.value);
}

/** Returns the canonical text; `undefined` if `text` is not an address. */
export function canonicalAddress(text: string): string | undefined {
  const address = parseAddress(text);
  return address && formatAddress(address);
}

export function familyOf(text: string): IPFamily | undefined {
  return parseAddress(text)?.family;
}

/** Parses four decimal numbers. Creates no substrings, which is faster: a repair parses the IPs of all Services. */
export function parseIPv4(text: string): number | undefined {
  let value = 0;
  let octet = Number.NaN;
  let dots = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT && octet <= 255) {
      value = value * 256 + octet;
      octet = Number.NaN;
      dots += 1;
    } else if (code >= DIGIT_0 && code <= DIGIT_9) octet = (octet || 0) * 10 + code - DIGIT_0;
    else return undefined;
  }
  return dots === 3 && octet <= 255 ? value * 256 + octet : undefined;
}

export function formatIPv4(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/** Parses any IPv6 text, including IPv4-mapped addresses, into 128 bits. */
export function parseIPv6(text: string): bigint | undefined {
  const groups = withGroupsOnly(text)?.replace(LEADING_ZEROS, '$1');
  if (groups === undefined || groups.length > LONGEST_IPV6_TEXT || !groups.includes(':') || groups.includes('%')) {
    return undefined;
  }
  try {
    return ipaddr.IPv6.parse(groups).parts.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
  } catch {
    return undefined;
  }
}

/** Replaces an IPv4 address at the end with two groups, because ipaddr.js parses `::1.2.3.4` as an IPv4-mapped address. */
function withGroupsOnly(text: string): string | undefined {
  if (!text.includes('.')) return text;
  const tailAt = text.lastIndexOf(':') + 1;
  const tail = parseIPv4(text.slice(tailAt));
  if (tailAt === 0 || tail === undefined) return undefined;
  return `${text.slice(0, tailAt)}${(tail >>> 16).toString(16)}:${(tail & 0xffff).toString(16)}`;
}

function formatIPv6(value: bigint): string {
  const digits = value.toString(16).padStart(32, '0');
  const groups = Array.from({ length: 8 }, (_, group) => Number.parseInt(digits.slice(4 * group, 4 * group + 4), 16));
  return new ipaddr.IPv6(groups).toRFC5952String();
}
