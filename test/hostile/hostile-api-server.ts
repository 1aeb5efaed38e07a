import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as timer } from 'node:timers/promises';
import { portOf } from '../support/serve.ts';
import type { Attack } from './attacks.ts';

export type Wire = Pick<Attack, 'wire' | 'everyMs' | 'tls'>;
export type HostileApiServer = Awaited<ReturnType<typeof startHostileApiServer>>;

/** Starts a server that answers every request, including probes, with its attack. */
export async function startHostileApiServer(attack: Wire, host = '127.0.0.1') {
  const sockets = new Set<Socket>();
  const closed = new AbortController();
  let sent = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => {
      void send(socket, hostile.attack, closed.signal, (bytes) => {
        sent += bytes;
      }).catch(() => undefined);
    });
  });
  const port = await portOf(server, host);
  const hostile = {
    attack,
    get url(): string {
      return `${this.attack.tls ? 'https' : 'http'}://${host}:${port}`;
    },
    /** The bytes that were sent. */
    sent: () => sent,
    /** The number of open connections. */
    connections: () => sockets.size,
    stop: async () => {
      closed.abort();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return hostile;
}

/** Sends as fast as the client reads, so that the server needs no memory for the attack. */
function send(socket: Socket, { wire, everyMs }: Wire, signal: AbortSignal, count: (bytes: number) => void) {
  async function* pieces() {
    for (const piece of wire()) {
      count(piece.length);
      yield piece;
      if (everyMs !== undefined) await timer(everyMs, undefined, { signal });
    }
  }
  return pipeline(Readable.from(pieces(), { objectMode: false }), socket, { signal });
}
