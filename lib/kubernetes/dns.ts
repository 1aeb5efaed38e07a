import { lookup } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { isNativeError } from 'node:util/types';
import { canonicalAddress } from '../allocator/ip-address.ts';
import { unlessAborted } from '../cluster/async.ts';
import { isLocalAddress } from '../cluster/hosts.ts';
import { ClusterError, type HostResolver } from './cluster-port.ts';

const NEVER = new AbortController().signal;

export type RecordLookup = Pick<Resolver, 'resolve4' | 'resolve6'>;

/** The name exists, but has no record of this kind. */
const NO_SUCH_RECORD: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/** Queries each name server of the machine for 1 s, then for 2 s. The signal ends queries under way. */
export function dnsLookup(deadline: AbortSignal): RecordLookup {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  deadline.addEventListener('abort', () => resolver.cancel(), { once: true });
  return resolver;
}

/**
 * Looks up both kinds of record. The look-up fails if either fails, because half of the addresses would count as all,
 * and if there is no address, because a record may be deleted by mistake.
 */
export function dnsHostResolver(lookup: RecordLookup): HostResolver {
  return async (host, signal = NEVER) => {
    const ask = () => Promise.all([records(lookup.resolve4(host)), records(lookup.resolve6(host))]);
    try {
      const found = await unlessAborted(signal, ask);
      const addresses = [...new Set(found.flat().flatMap((text) => canonicalAddress(text) ?? []))].sort();
      return addresses.length === 0 ? undefined : addresses;
    } catch {
      return undefined;
    }
  };
}

async function records(answer: Promise<string[]>): Promise<string[]> {
  return answer.catch((error: unknown) => {
    if (isNativeError(error) && 'code' in error && NO_SUCH_RECORD.has(error.code)) return [];
    throw error;
  });
}

/** Returns the error for a connection to a local address. */
export function localRefused(host: string): ClusterError {
  return new ClusterError(
    'BadKubeconfig',
    `${host} is a loopback, link-local or metadata address, to which functions do not connect. ` +
      'Name an address of the API server that the functions reach.',
  );
}

/** Looks up a host as `dns.lookup`, without local addresses, so that no name can lead to one. */
export const remoteLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, '');
    const remote = found.filter(({ address }) => !isLocalAddress(address));
    const [first] = remote;
    if (first === undefined) return callback(localRefused(hostname), '');
    return options.all ? callback(null, remote) : callback(null, first.address, first.family);
  });
};
