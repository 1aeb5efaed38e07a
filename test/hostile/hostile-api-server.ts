import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as timer } from 'node:timers/promises';
import type { Attack } from './attacks.ts';

/** A hostile API server: it answers every request with its attack, probes too. */
export interface HostileApiServer {
  /** Of the attack that it has. */
  readonly url: string;
  attack: Attack;
  /** Bytes that it got rid of. */
  readonly sent: () => number;
  /** That are open. */
  readonly connections: () => number;
  readonly stop: () => Promise<void>;
}

export async function startHostileApiServer(first: Attack): Promise<HostileApiServer> {
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
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const hostile: HostileApiServer = {
    get url() {
      return `${hostile.attack.tls ? 'https' : 'http'}://127.0.0.1:${port}`;
    },
    attack: first,
    sent: () => sent,
    connections: () => sockets.size,
    stop: async () => {
      closed.abort();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return hostile;
}

/** As fast as the other side takes it, so that it costs the attacker no memory. */
function send(socket: Socket, { wire, everyMs }: Attack, signal: AbortSignal, count: (bytes: number) => void) {
  async function* pieces() {
    for (const piece of wire()) {
      count(piece.length);
      yield piece;
      if (everyMs !== undefined) await timer(everyMs, undefined, { signal });
    }
  }
  return pipeline(Readable.from(pieces(), { objectMode: false }), socket, { signal });
}
