import { constants } from 'node:crypto';
import { createServer } from 'node:tls';
import { expect, test } from '@jest/globals';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { aPassContext } from '../support/pass-context.ts';
import { portOf } from '../support/serve.ts';
import { accessTo, textOf, transportWith } from '../support/transport-to.ts';
import { KEY_UPDATE, portOfServerSending, SESSION_TICKET } from './tls-messages.ts';

const authority = makeAuthority('the attacker');
const EMPTY_REPLY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Sends a request and returns the status. Keeps the connection until `end`. */
async function statusOf(port: number, end?: Promise<unknown>): Promise<number> {
  const transport = transportWith(await accessTo(`https://127.0.0.1:${port}`, authority));
  const { status, body } = await transport({ method: 'GET', path: '/', headers: {} }, new AbortController().signal);
  await textOf(body);
  await end;
  return status;
}

function serverWithChainOf(certificates: number) {
  const { key, cert } = authority.issue(['127.0.0.1']);
  const server = createServer({ key, cert: cert.repeat(certificates) }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(EMPTY_REPLY));
  });
  afterThisTest(() => server.close());
  return server.on('tlsClientError', () => undefined);
}

test('a certificate chain of more than 100 KB ends the handshake before it is verified', async () => {
  await expect(statusOf(await portOf(serverWithChainOf(10)))).resolves.toBe(200);
  await expect(statusOf(await portOf(serverWithChainOf(1_000)))).rejects.toThrow(/excessive message size/i);
});

test('a certificate chain that does not verify is verified once per probe, and at most four times for all calls of a pass', async () => {
  const server = serverWithChainOf(10);
  let handshakes = 0;
  server.on('connection', () => {
    handshakes += 1;
  });
  const url = `https://127.0.0.1:${await portOf(server)}`;
  const { ca } = makeAuthority('another');
  const access = await aProcess(() => accessTo(url, { ca })).connect();
  expect(await access.probe({ url, authenticate: false })).toMatchObject({ kind: 'tlsFailure' });
  expect(handshakes).toBe(1);
  const names = Array.from({ length: 20 }, (_, index) => `system-${index}`);
  const spec = aClusterSpec({ systemNamespaces: names });
  const { errors } = await systemNamespaces.run(aPassContext({ kubernetes: access.kubernetes, spec }));
  expect(errors).toEqual(names.map(() => expect.objectContaining({ code: 'TlsFailure' })));
  expect(handshakes).toBeLessThanOrEqual(1 + 4);
});

test.each([
  ['session tickets', SESSION_TICKET, 14, 'more than 16 session tickets of TLS'],
  ['key updates', KEY_UPDATE, 27, 'more than 32 secrets of TLS'],
])('a connection ends if the server sends too many %s', async (_what, message, accepted, error) => {
  const replyAfter = async (messages: number) => {
    const many = Array.from({ length: messages }, () => message);
    return statusOf(await portOfServerSending(many, authority.issue(['127.0.0.1'])));
  };
  await expect(replyAfter(accepted)).resolves.toBe(200);
  await expect(replyAfter(accepted + 1)).rejects.toMatchObject({ name: 'OverBound', message: error });
});

/** Without tickets, a server is the first to know that a handshake has succeeded. */
const FULL_HANDSHAKES = { maxVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;

test('a TLS 1.2 server cannot renegotiate a kept connection', async () => {
  const attempt = Promise.withResolvers<'renegotiated' | 'refused'>();
  const server = createServer({ ...authority.issue(['127.0.0.1']), ...FULL_HANDSHAKES }, (socket) => {
    socket.on('error', () => attempt.resolve('refused')).on('close', () => attempt.resolve('refused'));
    socket.on('data', () => {
      socket.write(EMPTY_REPLY);
      socket.renegotiate({}, (error) => attempt.resolve(error ? 'refused' : 'renegotiated'));
    });
  });
  afterThisTest(() => server.close());
  expect(await statusOf(await portOf(server), attempt.promise)).toBe(200);
  expect(await attempt.promise).toBe('refused');
});

test('a connection ends if a TLS 1.2 server requests another handshake', async () => {
  const server = createServer({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.2' }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n');
      socket.renegotiate({}, () => undefined);
    });
  });
  afterThisTest(() => server.close());
  const error = { name: 'OverBound', message: 'more than 1 handshake of TLS' };
  await expect(statusOf(await portOf(server))).rejects.toMatchObject(error);
});
