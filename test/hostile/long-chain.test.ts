import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const authority = makeAuthority('the attacker');
const { signal } = new AbortController();

/** The status or the error of a request to a server whose chain has so many certificates. */
async function requestWithChainOf(certificates: number): Promise<unknown> {
  const { key, cert } = authority.issue(['127.0.0.1']);
  const server = createServer({ key, cert: cert.repeat(certificates) }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  });
  server.on('tlsClientError', () => undefined);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connections = new ApiServerConnections();
  const access = await parseKubeconfig(kubeconfigTo(url, { ca: authority.ca }), 'of the test');
  try {
    const { status } = await connections.transport(access)({ method: 'GET', path: '/', headers: {} }, signal);
    return status;
  } catch (error) {
    return error;
  } finally {
    await connections.close();
    server.close();
  }
}

test('a certificate chain of more than 100 KB ends the handshake before it is verified', async () => {
  await expect(requestWithChainOf(10)).resolves.toBe(200);
  await expect(requestWithChainOf(1_000)).resolves.toMatchObject({
    message: expect.stringMatching(/excessive message size/i),
  });
});
