import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LoopbackServer {
  /** The address of the server: `127.0.0.1:<port>`. */
  readonly host: string;
  /** Closes the server and every connection. */
  close(): Promise<void>;
}

export interface LocalReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns a listener that sends the answer to each request. If `answer` fails, the connection ends. */
export function answering(answer: (request: IncomingMessage) => Promise<LocalReply>): RequestListener {
  return (request, response) => {
    answer(request)
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  };
}

/** Starts a server on the loopback. Port 0 stands for a free port. @throws Error if the port is not free */
export async function listenOnLoopback(server: Server, port = 0): Promise<LoopbackServer> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => closeAtOnce(server),
  };
}

export function closeAtOnce(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeAllConnections();
  });
}
