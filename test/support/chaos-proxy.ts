import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import type { PickIndex } from '../../lib/allocator/range-allocator.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { portOf } from './serve.ts';

export const CONNECTION_FAULTS = ['cut', 'delay', 'halfReply', 'reset', 'garbage', 'wrongCertificate', 'drip'] as const;
export type ConnectionFault = (typeof CONNECTION_FAULTS)[number];

export type ChaosProxy = Awaited<ReturnType<typeof startChaosProxy>>;

const DRIP_BYTES = 512;

/** Starts a proxy between a client and a server, below TLS, that breaks connections. */
export async function startChaosProxy(targetPort: number, pick: PickIndex) {
  const counts = { cut: 0, delay: 0, halfReply: 0, reset: 0, garbage: 0, wrongCertificate: 0, drip: 0 };
  const impostor = createTlsServer(makeAuthority('another').issue(['127.0.0.1']), (socket) => socket.destroy());
  impostor.on('tlsClientError', () => {});
  const impostorPort = await portOf(impostor);
  const sockets = new Set<Socket>();
  let every = 0;
  let isDown = false;
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createTcpServer((client) => {
    if (isDown) return void client.on('error', () => {}).resetAndDestroy();
    const isFaulty = every > 0 && pick(every) === 0;
    const fault = isFaulty ? CONNECTION_FAULTS[pick(CONNECTION_FAULTS.length)] : undefined;
    if (fault !== undefined) counts[fault] += 1;
    const port = fault === 'wrongCertificate' ? impostorPort : targetPort;
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    void passOn(upstream, client, fault, pick).catch(() => client.destroy());
    // While there are faults, each connection is closed soon, so that the next one may get a fault.
    if (every > 0) setTimeout(() => client.destroy(), 500 + pick(1_500)).unref();
  });
  return {
    port: await portOf(server),
    counts,
    /** Gives one of `next` connections a fault, and closes every connection soon after it has opened. 0 ends the faults. */
    faults: (next: number) => {
      every = next;
      breakAll();
    },
    /** Takes the server down or brings it back. While it is down, connections break, and new ones are reset. */
    down: (next: boolean) => {
      isDown = next;
      breakAll();
    },
    close: async () => {
      breakAll();
      await Promise.all([server, impostor].map((each) => new Promise((done) => each.close(done))));
    },
  };
}

async function passOn(
  upstream: Socket,
  client: Socket,
  fault: ConnectionFault | undefined,
  pick: PickIndex,
): Promise<void> {
  if (fault === 'cut') return void client.destroy();
  if (fault === 'reset') return void client.resetAndDestroy();
  if (fault === 'delay') await sleep(200 + pick(1_000));
  let left = fault === 'halfReply' || fault === 'garbage' ? 1_500 + pick(3_000) : Number.POSITIVE_INFINITY;
  for await (const chunk of upstream as AsyncIterable<Buffer>) {
    if (chunk.length >= left) {
      client.write(chunk.subarray(0, left));
      if (fault === 'garbage') client.write(Buffer.alloc(64, pick(256)));
      else client.destroy();
      left = Number.POSITIVE_INFINITY;
      continue;
    }
    left -= chunk.length;
    if (fault !== 'drip') client.write(chunk);
    for (let at = 0; fault === 'drip' && at < chunk.length; at += DRIP_BYTES) {
      client.write(chunk.subarray(at, at + DRIP_BYTES));
      await sleep(5);
    }
  }
  client.end();
}
