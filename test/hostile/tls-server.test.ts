import { createServer, type Server, TLSSocket } from 'node:tls';
import { expect, jest, test } from '@jest/globals';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { portOver } from '../kubernetes/port-answering.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { portOf } from '../support/serve.ts';

const authority = makeAuthority('the attacker');
const { signal } = new AbortController();
const EMPTY_REPLY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Sends a request and returns the status. Keeps the connection until `end`. */
async function statusOf(server: Server, end?: Promise<unknown>): Promise<number> {
  const url = `https://127.0.0.1:${await portOf(server)}`;
  const connections = new ApiServerConnections();
  const transport = connections.transport(
    await parseKubeconfig(kubeconfigTo(url, { ca: authority.ca }), 'of the test'),
  );
  try {
    const { status, body } = await transport({ method: 'GET', path: '/', headers: {} }, signal);
    await readWhole(body, url, new BytesInFlight());
    await end;
    return status;
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
  await expect(statusOf(serverWithChainOf(10))).resolves.toBe(200);
  await expect(statusOf(serverWithChainOf(1_000))).rejects.toMatchObject({
    message: expect.stringMatching(/excessive message size/i),
  });
});

test('a certificate chain that does not verify is verified once per probe and once per call', async () => {
  const server = serverWithChainOf(10);
  let handshakes = 0;
  server.on('connection', () => {
    handshakes += 1;
  });
  const url = `https://127.0.0.1:${await portOf(server)}`;
  afterThisTest(() => server.close());
  const access = await parseKubeconfig(kubeconfigTo(url, { ca: makeAuthority('another').ca }), 'of the test');
  const target = { url, authenticate: false };
  const probe = httpsProber({ access, deadline: signal, userAgent: 'test' });
  expect(await probe(target)).toMatchObject({ kind: 'tlsFailure' });
  expect(handshakes).toBe(1);
  const connections = new ApiServerConnections();
  afterThisTest(() => connections.close());
  const port = portOver(connections.transport(access), { server: url });
  const service = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;
  await expect(port.get(service)).rejects.toMatchObject({ code: 'TlsFailure' });
  expect(handshakes).toBe(2);
});

test('a connection ends if the server sends more than 16 session tickets', async () => {
  const verified = jest.spyOn(TLSSocket.prototype, 'getPeerCertificate');
  afterThisTest(() => verified.mockRestore());
  const requested = Promise.withResolvers<void>();
  const server = createServer(authority.issue(['localhost']), (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => requested.resolve());
  });
  const url = `https://localhost:${await portOf(server)}`;
  afterThisTest(() => server.close());
  const connections = new ApiServerConnections();
  afterThisTest(() => connections.close());
  const transport = connections.transport(
    await parseKubeconfig(kubeconfigTo(url, { ca: authority.ca }), 'of the test'),
  );
  const reply = transport({ method: 'GET', path: '/', headers: {} }, signal);
  await requested.promise;
  const [client] = verified.mock.contexts as TLSSocket[];
  // A server of Node cannot send more than two tickets.
  for (let ticket = 0; ticket < 17; ticket += 1) client?.emit('session', Buffer.alloc(0));
  // Without the bound, there would be no reply.
  expect(client?.destroyed).toBe(true);
  await expect(reply).rejects.toMatchObject({ name: 'OverBound', message: 'more than 16 session tickets of TLS' });
});

test('a TLS 1.2 server cannot renegotiate a kept connection', async () => {
  const attempt = Promise.withResolvers<'renegotiated' | 'refused'>();
  const server = createServer({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.2' }, (socket) => {
    socket.on('error', () => attempt.resolve('refused'));
    socket.on('data', () => {
      socket.write(EMPTY_REPLY);
      socket.renegotiate({}, (error) => attempt.resolve(error ? 'refused' : 'renegotiated'));
    });
  });
  expect(await statusOf(server, attempt.promise)).toBe(200);
  expect(await attempt.promise).toBe('refused');
});
