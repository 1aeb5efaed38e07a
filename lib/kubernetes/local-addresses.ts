import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isLocalAddress } from '../cluster/local-host.ts';
import { ClusterError } from './cluster-port.ts';

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
