import { type Address, parseAddress } from '../allocator/ip-address.ts';
import { isGlobalUnicast, within } from '../allocator/network.ts';

/** The IPv6 network of AWS instance metadata and EKS Pod Identity. */
const isMetadata = within('fd00:ec2::/32');
/** Networks whose last 32 bits are an IPv4 address: NAT64, IPv4-compatible and IPv4-translated addresses. */
const endsWithIPv4 = within('64:ff9b::/96', '64:ff9b:1::/48', '::/96', '::ffff:0:0:0/96');
const isSixToFour = within('2002::/16');

/** Returns whether an address is local to this machine or its link, such as an address of the host's metadata. */
export function isLocalAddress(text: string): boolean {
  const address = parseAddress(text);
  // A text that does not parse counts as local. The only such text that name servers return is an IPv6 address with a
  // zone, and a zone belongs to a link.
  return address === undefined || isLocal(address);
}

function isLocal(address: Address): boolean {
  if (!isGlobalUnicast(address) || isMetadata(address)) return true;
  if (address.family === 'IPv4') return address.value >> 24n === 0n;
  if (endsWithIPv4(address)) return isLocal(ipv4(address.value));
  return isSixToFour(address) && isLocal(ipv4(address.value >> 80n));
}

function ipv4(value: bigint): Address {
  return { family: 'IPv4', value: value & 0xffffffffn };
}

/** Returns whether the host of a URL is a local address; false for a host name, which is resolved at the connection. */
export function isLocalHost(url: URL): boolean {
  const host = hostOf(url);
  return parseAddress(host) !== undefined && isLocalAddress(host);
}

/** Returns the host of a URL in the form that a resolver accepts: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

const PLAIN_URL = /^https?:\/\/(\[[0-9a-f:.]+\]|[\w.-]+)(:\d+)?(\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?$/i;

/**
 * Parses the URL of a server. Returns `undefined` if the text is not an http or https URL, or if the URL has a credential,
 * query or fragment, or a part that the parser would repair. The parser reads `010.0.0.1` as 8.0.0.1, and `10.1` as 10.0.0.1.
 */
export function plainUrl(text: string): URL | undefined {
  const [, host = ''] = PLAIN_URL.exec(text) ?? [];
  const url = host === '' ? null : URL.parse(text);
  if (url === null) return undefined;
  const isSame = host.startsWith('[') || url.hostname === host.toLowerCase();
  return isSame ? url : undefined;
}

const OF_AWS = /\.(amazonaws\.com(\.cn)?|api\.aws)\.?$/;

/** Returns whether the URL belongs to AWS STS. STS would exchange a token with this audience for the credentials of a role. */
export function isAudienceOfSts({ hostname }: URL): boolean {
  const isSts = hostname.split('.').some((label) => label === 'sts' || label === 'sts-fips');
  return isSts && OF_AWS.test(hostname);
}
