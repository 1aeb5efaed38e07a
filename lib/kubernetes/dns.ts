import type { LookupAddress } from 'node:dns';
import { lookup as promisedLookup, Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { isNativeError } from 'node:util/types';
import { canonicalAddress } from '../allocator/ip-address.ts';
import { unlessAborted } from '../util/async.ts';
import { MOST_RECORDS } from '../util/bounds.ts';
import { isLocalAddress } from '../util/hosts.ts';
import { ClusterError, type HostResolver } from './cluster-port.ts';

const NEVER = new AbortController().signal;

export type RecordLookup = Pick<Resolver, 'resolve4' | 'resolve6'>;

const NO_SUCH_RECORD: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/** A query waits 1 s for each name server of the machine. If no server answers, it tries each server again, and waits 2 s. */
const QUERIES = { timeout: 1_000, tries: 2 };

export function dnsLookup(deadline: AbortSignal): RecordLookup {
  const resolver = new Resolver(QUERIES);
  deadline.addEventListener('abort', () => resolver.cancel(), { once: true });
  return resolver;
}

/** Looks up A and AAAA records. Fails if one query fails, or if there is no record: it may have been deleted by mistake. */
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
  const found = await answer.catch((error: unknown) => {
    if (isNativeError(error) && 'code' in error && NO_SUCH_RECORD.has(error.code)) return [];
    throw error;
  });
  return found.slice(0, MOST_RECORDS);
}

export function localRefused(host: string): ClusterError {
  return new ClusterError(
    'BadKubeconfig',
    `${host} is a loopback, link-local or metadata address, to which functions do not connect. ` +
      'Name an address of the API server that the functions reach.',
  );
}

/**
 * Looks up a host and omits local addresses, so that no name can lead to a local address. Uses `dns.lookup` only for addresses
 * and for names without a dot, because no name server of a tenant can delay these look-ups: `dns.lookup` has two threads for all
 * look-ups of a process, and a silent name server blocks a thread for ten seconds.
 */
export const remoteLookup: LookupFunction = (hostname, options, callback) => {
  const isAsked = hostname.includes('.') && isIP(hostname) === 0;
  const found = isAsked ? recordsOf(hostname) : promisedLookup(hostname, { all: true });
  found.then(
    (addresses) => {
      const remote = addresses.filter(({ address }) => !isLocalAddress(address));
      const [first] = remote;
      if (first === undefined) return callback(localRefused(hostname), '');
      return options.all ? callback(null, remote) : callback(null, first.address, first.family);
    },
    (error: NodeJS.ErrnoException) => callback(error, ''),
  );
};

/** Returns the IPv4 and IPv6 addresses of a host. If the look-up of one kind fails, the other kind suffices to connect. */
async function recordsOf(host: string): Promise<LookupAddress[]> {
  const resolver = new Resolver(QUERIES);
  const settled = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const addresses = settled.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  if (found.length > 0) return found.slice(0, MOST_RECORDS);
  const failures = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  const failure = failures.find((each) => !NO_SUCH_RECORD.has(each.code)) ?? failures[0];
  // `dns.lookup` uses the same two codes. They show the callers that no request was sent.
  const code = NO_SUCH_RECORD.has(failure?.code) ? 'ENOTFOUND' : 'EAI_AGAIN';
  throw Object.assign(new Error(`look-up of ${host}: ${failure?.code ?? 'no record'}`, { cause: failure }), { code });
}
