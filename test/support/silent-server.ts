import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { portOf } from './serve.ts';

/** Starts a server that accepts connections and never sends anything. @param onConnection is called for each connection */
export async function startSilentServer(onConnection = () => {}) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    onConnection();
    sockets.push(socket.on('error', () => undefined).resume());
  });
  const port = await portOf(server);
  return {
    /** The host and port, such as `127.0.0.1:8080`. */
    authority: `127.0.0.1:${port}`,
    /** The number of accepted connections. */
    connections: () => sockets.length,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
