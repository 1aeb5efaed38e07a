import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createTlsServer, get } from 'node:https';
import { createServer, type LookupFunction, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { expect, jest, test } from '@jest/globals';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { describeNetworkError, networkFaultOf } from '../../lib/kubernetes/network-fault.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { startHostileApiServer } from '../hostile/hostile-api-server.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { eventually } from '../support/eventually.ts';
import { portOf, serve } from '../support/serve.ts';
import { startSilentServer } from '../support/silent-server.ts';
import { accessTo, proberWith, textOf, transportWith } from '../support/transport-to.ts';

const signal = new AbortController().signal;
const GET = { method: 'GET', path: '/', headers: {} } as const;
const OK = 'HTTP/1.1 200 OK\r\n';

async function transportTo(url: string, stop?: () => Promise<void>, changed: Partial<ApiServerAccess> = {}) {
  if (stop !== undefined) afterThisTest(stop);
  return transportWith({ ...(await accessTo(url)), ...changed });
}

async function serverAndTransport(prefix = '') {
  const server = await startFaultServer(() => ({ status: 202, headers: { 'X-Odd': 'yes' }, body: 'done' }));
  return { server, transport: await transportTo(server.url + prefix, server.stop) };
}

/**
 * The IANA numbers of TLS 1.2 cipher suites with ephemeral Diffie-Hellman. The server selects the group, and can select a slow
 * one.
 */
const DHE_SUITES = '009e 009f ccaa 0033 0039 0067 006b c09e c09f c0a2 c0a3 c052 c053'.split(' ');

/** Starts a server that records the cipher suites of each ClientHello and closes the connection. */
async function startHelloServer() {
  const hello: string[][] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => {
      // The headers of the record and the handshake, the version and the random come before the session id.
      const lengthAt = 44 + (bytes[43] ?? 0);
      const suites = bytes.subarray(lengthAt + 2, lengthAt + 2 + bytes.readUInt16BE(lengthAt));
      hello.push(suites.toString('hex').match(/.{4}/g) ?? []);
      socket.destroy();
    });
  });
  const port = await portOf(server);
  afterThisTest(() => server.close());
  return { hello, url: `https://127.0.0.1:${port}` };
}

test('a transport sends the request unchanged and returns the whole reply', async () => {
  const { server, transport } = await serverAndTransport();
  const headers = { 'content-type': 'application/json', accept: 'a/b' };
  const reply = await transport({ method: 'PUT', path: '/api/v1/x?y=z', headers, body: '{"a":"é"}' }, signal);
  expect(reply).toMatchObject({ status: 202, headers: { 'x-odd': 'yes' } });
  expect(await textOf(reply.body)).toBe('done');
  expect(server.requests[0]).toMatchObject({ method: 'PUT', path: '/api/v1/x?y=z', headers, body: '{"a":"é"}' });
});

test('a reply whose body makes no progress for 20 seconds fails', async () => {
  const limits = jest.spyOn(Socket.prototype, 'setTimeout');
  afterThisTest(() => limits.mockRestore());
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n'));
  });
  const url = `http://127.0.0.1:${await portOf(server)}`;
  const transport = await transportTo(url, async () => void server.close());
  const { body } = await transport(GET, signal);
  const limited = limits.mock.contexts.filter((_, call) => limits.mock.calls[call]?.[0] === 20_000);
  expect(limited).toHaveLength(1);
  // The time limit is that of Node's own timer, which no fake clock advances.
  for (const socket of limited as Socket[]) socket.emit('timeout');
  await expect(textOf(body)).rejects.toThrow('the reply made no progress for 20000 ms');
});

test('a transport puts the path of the server URL before the path of the request', async () => {
  const { server, transport } = await serverAndTransport('/k8s/clusters/c-1/');
  await transport({ ...GET, path: '/api' }, signal);
  expect(server.requests[0]?.path).toBe('/k8s/clusters/c-1/api');
});

// Node.js 24.21 sends the final dot of a name with SNI, which a server in Go 1.26 answers with the alert decode_error.
// client-go omits the dot.
test.each([
  ['api.example.com.', {}],
  ['127.0.0.1', { 'tls-server-name': 'api.example.com.' }],
])('a TLS server %s gets the server name without its final dot', async (host, cluster) => {
  const { ca, issue } = makeAuthority('the cluster');
  const names: unknown[] = [];
  const server = createTlsServer(issue(['api.example.com']), (request, response) => {
    names.push((request.socket as TLSSocket).servername);
    response.end('done');
  });
  const port = await portOf(server);
  const lookup: LookupFunction = (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]);
  afterThisTest(() => server.close());
  const access = await accessTo(`https://${host}:${port}`, { ca, cluster });
  const { body } = await transportWith({ ...access, lookup })(GET, signal);
  expect(await textOf(body)).toBe('done');
  expect(names).toEqual(['api.example.com']);
});

test('a request to an https URL whose server does not use TLS fails with a TLS failure', async () => {
  const { server } = await serverAndTransport();
  const transport = await transportTo(server.url.replace('http:', 'https:'));
  expect(networkFaultOf(await transport(GET, signal).catch((error: unknown) => error))).toBe('tls');
});

test('twenty passes use at most four connections to one server, because later passes reuse connections', async () => {
  const server = await startFaultServer(() => ({ body: 'done' }));
  const connections = new ApiServerConnections();
  afterThisTest(server.stop);
  afterThisTest(() => connections.close());
  for (let pass = 0; pass < 20; pass += 1) {
    const transport = connections.transport(await accessTo(server.url));
    const { body } = await transport({ ...GET, path: '/api' }, signal);
    expect(await textOf(body)).toBe('done');
  }
  expect(server.connections()).toBeLessThanOrEqual(4);
});

test('the pieces of a reply that arrives byte by byte are joined', async () => {
  const sent = Array.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'.padEnd(200));
  const wire = () => sent.map((byte) => Buffer.from(byte));
  const server = await startHostileApiServer({ wire, everyMs: 1 });
  const transport = await transportTo(server.url, server.stop);
  const { body } = await transport(GET, signal);
  let pieces = 0;
  for await (const piece of body) pieces += Math.sign(piece.length);
  expect(pieces).toBe(1);
});

const LIST = Buffer.from(randomBytes(400_000).toString('hex'));

async function listFrom(body: Uint8Array, changed: Partial<ApiServerAccess> = {}) {
  const server = await startFaultServer(() => ({ headers: { 'content-encoding': 'gzip' }, body }));
  const transport = await transportTo(server.url, server.stop, changed);
  return { server, list: () => transport({ ...GET, streamed: true }, signal), get: () => transport(GET, signal) };
}

test('a request for a list accepts gzip, and other requests do not', async () => {
  const { server, list, get } = await listFrom(gzipSync(LIST));
  expect(await textOf((await list()).body)).toBe(LIST.toString());
  await textOf((await get()).body);
  expect(server.requests.map(({ headers }) => headers['accept-encoding'])).toEqual(['gzip', undefined]);
});

test('a credential in a gzip reply is masked', async () => {
  const token = randomUUID();
  const authHeaders = async () => ({ Authorization: `Bearer ${token}` });
  const { list } = await listFrom(gzipSync(`Bearer ${token} is refused`), { authHeaders });
  expect(await textOf((await list()).body)).toMatch(/^Bearer [^-]+ is refused$/);
});

test('if the connection breaks during a gzip reply, the read of the reply fails with the error of the connection', async () => {
  const server = await startHostileApiServer({
    wire: () => [Buffer.from(`${OK}content-encoding: gzip\r\ncontent-length: 900000\r\n\r\n`), gzipSync(LIST)],
  });
  const transport = await transportTo(server.url, server.stop);
  const { body } = await transport({ ...GET, streamed: true }, signal);
  await expect(textOf(body)).rejects.toMatchObject({ code: 'ECONNRESET' });
});

test('a request for a list releases its connection if the reader stops early', async () => {
  const { server, list } = await listFrom(gzipSync(LIST));
  for (let pass = 0; pass < 8; pass += 1) {
    for await (const piece of (await list()).body) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
  }
  expect(server.requests).toHaveLength(8);
});

test('a server cannot select a cipher that slows down the handshake', async () => {
  const { hello, url } = await startHelloServer();
  const transport = await transportTo(url);
  await transport(GET, signal).catch(() => undefined);
  await proberWith(await accessTo(url))({ url, authenticate: false });
  expect(hello).toHaveLength(2);
  for (const suites of hello) {
    expect(suites).toContain('c02b');
    expect(suites.filter((suite) => DHE_SUITES.includes(suite))).toEqual([]);
  }
});

function useFakeTimers(): void {
  jest.useFakeTimers({ advanceTimers: false, doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  afterThisTest(() => jest.useRealTimers());
}

test('a request fails if its connection is not established within 3 s', async () => {
  useFakeTimers();
  const silent = await startSilentServer();
  const transport = await transportTo(`https://${silent.authority}`, silent.close);
  const failed = expect(transport(GET, signal)).rejects.toMatchObject({ code: 'CONNECT_TIMEOUT' });
  while (silent.connections() === 0) await new Promise(setImmediate);
  jest.advanceTimersByTime(3_000);
  await failed;
});

test('the timeout of new connections does not end a request that waited for an existing connection', async () => {
  useFakeTimers();
  const authority = makeAuthority('the cluster');
  const react = ({ path }: { path: string }) => (path === '/hang' ? { hang: true } : { body: 'done' });
  const server = await startFaultServer(react, authority.issue(['127.0.0.1']));
  afterThisTest(server.stop);
  const transport = transportWith(await accessTo(server.url, authority));
  const deadline = new AbortController();
  const get = async (path: string) => textOf((await transport({ ...GET, path }, deadline.signal)).body);
  const first = ['/1', '/2', '/3', '/4'].map(get);
  const ended = expect(get('/hang')).rejects.toThrow('the pass has ended');
  expect(await Promise.all(first)).toEqual(['done', 'done', 'done', 'done']);
  while (server.requests.length < 5) await new Promise(setImmediate);
  expect(server.connections()).toBe(4);
  jest.advanceTimersByTime(3_000);
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  deadline.abort(new Error('the pass has ended'));
  await ended;
});

test('a connection is not reused if the server sends bytes without a request', async () => {
  const server = await startHostileApiServer({
    wire: () => [Buffer.from(`${OK}content-length: 2\r\n\r\nok`), Buffer.from(`${OK}\r\n`)],
    everyMs: 1,
  });
  const transport = await transportTo(server.url, server.stop);
  for (let request = 0; request < 3; request += 1) {
    const { body } = await transport(GET, signal);
    expect(await textOf(body)).toBe('ok');
    await eventually(() => expect(server.connections()).toBe(0));
  }
});

test('a request ends when its signal aborts, even if it has no connection yet', async () => {
  const silent = await startSilentServer();
  const transport = await transportTo(`https://${silent.authority}`, silent.close);
  const deadline = new AbortController();
  const reply = transport(GET, deadline.signal);
  await eventually(() => expect(silent.connections()).toBe(1));
  deadline.abort(new Error('the pass has ended'));
  await expect(reply).rejects.toThrow('the pass has ended');
});

const unreachable = (address: string, code: string) =>
  Object.assign(new Error(`connect ${code} ${address}:6443`), { code, address });

test.each([
  { address: '2001:db8::1', code: 'ENETUNREACH', explains: true },
  { address: '2001:db8::1', code: 'EAFNOSUPPORT', explains: true },
  { address: '2001:db8::1', code: 'ECONNREFUSED', explains: false },
  { address: '10.0.0.1', code: 'ENETUNREACH', explains: false },
])('only an unreachable IPv6 address causes advice about IPv6: $code at $address', ({ address, code, explains }) => {
  const described = describeNetworkError(unreachable(address, code));
  expect(described).toMatch(new RegExp(`^connect ${code} ${address}:6443`));
  expect(described.includes('dual-stack subnets (vpcSubnetIds) with vpcIpv6=true')).toBe(explains);
});

test('the error about a certificate of an unknown authority contains no advice about options of Node.js', async () => {
  const server = await serve((_, response) => response.end(), makeAuthority('unknown').issue(['127.0.0.1']));
  afterThisTest(server.close);
  const [error] = await once(get(server.url), 'error');
  expect(describeNetworkError(error)).toBe('unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)');
});
