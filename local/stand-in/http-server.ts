import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StandInApiServer } from './stand-in-api-server.ts';

export interface ListeningStandIn {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** Puts a stand-in on a loopback port of its own (`port` 0 takes a free one). */
export async function listen(standIn: Pick<StandInApiServer, 'handle'>, port = 0): Promise<ListeningStandIn> {
  const server = createServer((request, response) => {
    answer(standIn, request)
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${taken}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

async function answer(standIn: Pick<StandInApiServer, 'handle'>, request: IncomingMessage) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const { method = 'GET', url = '/' } = request;
  return standIn.handle({ method, path: url, headers, body: Buffer.concat(chunks).toString() });
}
