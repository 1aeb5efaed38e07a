import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { listenOnLoopback } from '../../local/loopback-server.ts';
import type { CertifiedKey } from '../../local/stand-in/identity.ts';

/** Serves HTTP on a loopback port, or HTTPS if a certificate is given. */
export async function serve(listener: RequestListener, tls?: CertifiedKey) {
  const server = tls ? createHttpsServer(tls, listener) : createHttpServer(listener);
  const { host, close } = await listenOnLoopback(server);
  return {
    url: `${tls ? 'https' : 'http'}://${host}`,
    server,
    async close() {
      if (server.listening) await close();
      server.closeAllConnections();
    },
  };
}

/** Starts a server on a free loopback port. @returns the port */
export async function portOf(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}
