import { networkInterfaces } from 'node:os';

/**
 * Returns an IPv4 address of this machine that Endpoints accept and on which an API server can listen.
 * @throws Error if this machine has only loopback and link-local addresses
 */
export function ownAddress(): string {
  const own = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal && !each.address.startsWith('169.254.'));
  if (own === undefined) throw new Error('this test needs an IPv4 address beside those of the loopback interface');
  return own.address;
}
