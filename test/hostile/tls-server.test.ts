import { createServer, type Server } from 'node:tls';
import { expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { portOf } from '../support/serve.ts';

const authority = makeAuthority('the attacker');
const { signal } = new AbortController();
const EMPTY_REPLY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Sends requests one after the other, if possible over the same connection, and returns the statuses. */
async function statusesOf(requests: number, server: Server): Promise<readonly number[]> {
  const url = `https://127.0.0.1:${await portOf(server)}`;
  const connections = new ApiServerConnections();
  const transport = connections.transport(
    await parseKubeconfig(kubeconfigTo(url, { ca: authority.ca }), 'of the test'),
  );
  const statuses: number[] = [];
  try {
    for (let request = 0; request < requests; request += 1) {
      const { status, body } = await transport({ method: 'GET', path: '/', headers: {} }, signal);
      await readWhole(body, url, new BytesInFlight());
      statuses.push(status);
    }
    return statuses;
  } finally {
    await connections.close();
    server.close();
  }
}

function serverWithChainOf(certificates: number): Server {
  const { key, cert } = authority.issue(['127.0.0.1']);
  const server = createServer({ key, cert: cert.repeat(certificates) }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(EMPTY_REPLY));
  });
  return server.on('tlsClientError', () => undefined);
}

test('a certificate chain of more than 100 KB ends the handshake before it is verified', async () => {
  await expect(statusesOf(1, serverWithChainOf(10))).resolves.toEqual([200]);
  await expect(statusesOf(1, serverWithChainOf(1_000))).rejects.toMatchObject({
    message: expect.stringMatching(/excessive message size/i),
  });
});

test('a TLS 1.2 server that tries to renegotiate a kept connection is ignored', async () => {
  const outcomes: string[] = [];
  const server = createServer({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.2' }, (socket) => {
    outcomes.push('connected');
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(EMPTY_REPLY));
    // The server renegotiates after the first of two requests.
    socket.once('data', () => {
      socket.renegotiate({ rejectUnauthorized: false }, (error) => {
        outcomes.push(error === null ? 'renegotiated' : 'refused');
      });
    });
  });
  expect(await statusesOf(2, server)).toEqual([200, 200]);
  expect(outcomes).toContain('connected');
  expect(outcomes).not.toContain('renegotiated');
});
