import { once } from 'node:events';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands between a client and an HTTP server whose clock it makes wrong. */
export interface DateShiftingProxy {
  readonly endpoint: string;
  /** The clock that writes the `Date` of each reply. */
  nowMs: () => number;
  close(): Promise<void>;
}

export async function startDateShiftingProxy(target: string): Promise<DateShiftingProxy> {
  const { host, hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const forwarded = ask({ hostname, port, method, path, headers: { ...headers, host } }, (reply) => {
      outgoing.sendDate = false;
      const date = new Date(proxy.nowMs()).toUTCString();
      outgoing.writeHead(reply.statusCode ?? 502, { ...reply.headers, date });
      reply.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    nowMs: Date.now,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return proxy;
}
