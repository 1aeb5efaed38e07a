import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isLocalAddress } from '../cluster/local-host.ts';
import { ClusterError } from './cluster-port.ts';

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
