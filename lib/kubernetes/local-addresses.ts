import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type Address, parseAddress } from '../allocator/ip-address.ts';
import { isGlobalUnicast, networkContains, parseCidr } from '../allocator/network.ts';
import { ClusterError } from './cluster-port.ts';

/** Instance metadata and pod identity of AWS, by IPv6. */
const METADATA = parseCidr('fd00:ec2::/32');
/** Their last 32 bits are an IPv4 address: NAT64, and what IPv6 began with. */
const WITH_IPV4 = ['64:ff9b::/96', '64:ff9b:1::/48', '::/96'].map(parseCidr);
const SIX_TO_FOUR = parseCidr('2002::/16');

/** Whether an address is one of this machine or its link: the function's own runtime, the metadata of its host. */
function isLocalAddress(text: string): boolean {
  const address = parseAddress(text);
  // A zone is of a link. No other text comes from a name server.
  return address === undefined || isLocal(address);
}

function isLocal(address: Address): boolean {
  if (!isGlobalUnicast(address) || isIn(METADATA, address)) return true;
  if (address.family === 'IPv4') return address.value >> 24n === 0n;
  if (WITH_IPV4.some((network) => isIn(network, address))) return isLocal(ipv4(address.value));
  return isIn(SIX_TO_FOUR, address) && isLocal(ipv4(address.value >> 80n));
}

function ipv4(value: bigint): Address {
  return { family: 'IPv4', value: value & 0xffffffffn };
}

function isIn(network: ReturnType<typeof parseCidr>, address: Address): boolean {
  return network !== undefined && networkContains(network, address);
}

/** Whether the host of a URL is a local address. A name is looked up when it is connected to, by {@link remoteLookup}. */
export function isLocalHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return parseAddress(host) !== undefined && isLocalAddress(host);
}

/** The error for a connection that a function does not make. */
export function localRefused(host: string): ClusterError {
  return new ClusterError(
    'BadKubeconfig',
    `${host} is a loopback, link-local or metadata address, to which a function does not connect. ` +
      'Name an address of the API server that the functions reach.',
  );
}

/** As `dns.lookup`, for the connection itself: local addresses are left out, so that no name can stand for one. */
export const remoteLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, '');
    const remote = found.filter(({ address }) => !isLocalAddress(address));
    const [first] = remote;
    if (first === undefined) return callback(localRefused(hostname), '');
    return options.all ? callback(null, remote) : callback(null, first.address, first.family);
  });
};
