import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { CertifiedKey } from '../../local/stand-in/identity.ts';

/** An HTTP server at a port of the loopback. */
export interface Served {
  readonly url: string;
  readonly server: Server;
  /** Closes the connections, too. */
  close(): Promise<void>;
}

/** Serves HTTPS if a certificate is given. */
export async function serve(listener: RequestListener, tls?: CertifiedKey): Promise<Served> {
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
