import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { CertifiedKey } from '../../local/stand-in/identity.ts';

/** Serves HTTP, or HTTPS if a certificate is given, on a free port. */
export async function serve(listener: RequestListener, tls?: CertifiedKey, host = '127.0.0.1') {
  const server = tls ? createHttpsServer(tls, listener) : createHttpServer(listener);
  const port = await portOf(server, host);
  return {
    url: `${tls ? 'https' : 'http'}://${host}:${port}`,
    server,
    async close() {
      const closed = server.listening ? once(server.close(), 'close') : undefined;
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Starts a server on a free port. @returns the port */
export async function portOf(server: Server, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, host), 'listening');
  return (server.address() as AddressInfo).port;
}
