import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/**
 * Takes connections and never says a word.
 * @param onConnection is called for each connection
 */
export async function startSilentServer(onConnection = () => {}) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    onConnection();
    sockets.push(socket.on('error', () => undefined).resume());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    /** `127.0.0.1:<port>` */
    authority: `127.0.0.1:${port}`,
    /** Connections that it has taken. */
    connections: () => sockets.length,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
