import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { CertifiedKey } from '../../local/stand-in/identity.ts';

/** Serves HTTP on a loopback port, or HTTPS if a certificate is given. */
export async function serve(listener: RequestListener, tls?: CertifiedKey) {
  const server = tls ? createHttpsServer(tls, listener) : createHttpServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    server,
    async close() {
      const closed = server.listening ? once(server, 'close') : undefined;
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
