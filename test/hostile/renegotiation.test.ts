import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const authority = makeAuthority('the attacker');
const { signal } = new AbortController();

/** A server that asks for a renegotiation after the first of two requests. */
async function startRenegotiatingServer() {
  const outcomes: string[] = [];
  const server = createServer({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.2' }, (socket: TLSSocket) => {
    outcomes.push('connected');
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
    socket.once('data', () => {
      socket.renegotiate({ rejectUnauthorized: false }, (error) => {
        outcomes.push(error === null ? 'renegotiated' : 'refused');
      });
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { outcomes, url: `https://127.0.0.1:${port}`, stop: () => server.close() };
}

test('a TLS 1.2 server cannot renegotiate a kept connection', async () => {
  const { outcomes, url, stop } = await startRenegotiatingServer();
  const connections = new ApiServerConnections();
  const access = await parseKubeconfig(kubeconfigTo(url, { ca: authority.ca }), 'of the test');
  const transport = connections.transport(access);
  for (let request = 0; request < 2; request += 1) {
    const { body } = await transport({ method: 'GET', path: '/', headers: {} }, signal);
    await readWhole(body, url, new BytesInFlight());
  }
  await connections.close();
  stop();
  expect(outcomes).toContain('connected');
  expect(outcomes).not.toContain('renegotiated');
});
