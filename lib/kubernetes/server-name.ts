import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';

/** Returns how `node:tls` verifies that a certificate is for this name. An address is no name that a client may send. */
export function verifiedAs(name: string | undefined): Pick<ConnectionOptions, 'servername' | 'checkServerIdentity'> {
  if (name === undefined) return {};
  if (isIP(name) === 0) return { servername: name };
  return { checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate) };
}
