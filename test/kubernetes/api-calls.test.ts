import { describe, expect, jest, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { accessTo, transportWith } from '../support/transport-to.ts';
import { failed, portAnswering, portOver, ref, reply, service } from './port-answering.ts';

const SERVER = 'https://10.0.0.1:6443';

const calls: readonly (readonly [string, (port: ClusterPort) => Promise<unknown>])[] = [
  ['get', (port) => port.get(ref)],
  ['list', (port) => port.list('Service', 'default')],
  ['create', (port) => port.create(service)],
  ['update', (port) => port.update(service)],
  ['mergePatch', (port) => port.mergePatch(ref, {})],
  ['delete', (port) => port.delete(service)],
  ['services', (port) => listAllServices(port)],
];

const listOf = (kind: string, fields: object = {}) =>
  reply(200, { apiVersion: 'v1', kind, metadata: { resourceVersion: '1' }, items: [], ...fields });
const raw = (status: number, text: string, headers = {}): HttpReply => ({ status, headers, body: [Buffer.from(text)] });
const lost = Object.assign(new Error('other side closed'), { code: 'ECONNRESET' });
const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const cutOff = {
  async *[Symbol.asyncIterator]() {
    yield Buffer.from(JSON.stringify(service).slice(0, 40));
    throw lost;
  },
};

describe.each<[string, HttpReply, string, RegExp]>([
  ['401', failed(401, 'Unauthorized'), 'Unauthorized', /credential in the kubeconfig.*replace it/],
  ['403', failed(403, 'Forbidden', 'User "x" cannot'), 'Forbidden', /User "x" cannot.*Grant/],
  ['400', failed(400, 'BadRequest', 'what is this'), 'Rejected', /what is this/],
  ['400 with a sentence', failed(400, 'BadRequest', 'Try again later.'), 'Rejected', /: Try again later\. Nothing/],
  ['405 without a Status', raw(405, '<html>no</html>'), 'MalformedReply', /405 without a Status/],
  ['a redirect', raw(302, '', { location: 'https://10.0.0.1/' }), 'MalformedReply', /302 without/],
  ['a login page', raw(200, '<html>please log in</html>'), 'MalformedReply', /server URL in the kubeconfig/],
  ['an empty body', raw(200, ''), 'MalformedReply', /unlike a Kubernetes API server/],
  ['JSON that is cut off', raw(200, '{"kind":"Service","apiVersion":"v1","meta'), 'MalformedReply', /not all of it/],
])('a faulty reply (%s)', (_, answer, code, message) => {
  test.each(calls)('the call %s fails with a code and a message that contains the resolution', async (_name, call) => {
    const { port, requests } = portAnswering(answer);
    await expect(call(port)).rejects.toMatchObject({
      name: 'ClusterError',
      code,
      message: expect.stringMatching(message),
      // Another call may succeed, unless the credential is wrong.
      server: code === 'Unauthorized' ? SERVER : undefined,
    });
    expect(requests).toHaveLength(1);
  });
});

test.each([
  ['details is a text', 'none'],
  ['details.causes is a map', { causes: {} }],
])('the message and the reason of a Status are read although %s', async (_, details) => {
  const status = { kind: 'Status', apiVersion: 'v1', reason: 'Conflict', message: 'x', details };
  await expect(portAnswering(reply(409, status)).port.update(service)).resolves.toMatchObject({ outcome: 'conflict' });
});

describe.each<[string, HttpReply | Error]>([
  ['500', failed(500, 'InternalError', 'etcdserver: request timed out')],
  ['503 without a Status', raw(503, 'upstream connect error')],
  ['a connection that is dropped', lost],
  ['a reply that is cut off', { status: 200, headers: {}, body: cutOff }],
])('a temporary fault (%s)', (_, answer) => {
  test.each(calls)('the call %s is tried five times, and then fails with Unavailable', async (_name, call) => {
    const random = jest.spyOn(Math, 'random').mockReturnValue(0);
    afterThisTest(() => random.mockRestore());
    const { port, requests, waits } = portAnswering(answer);
    const message = expect.stringContaining(SERVER);
    await expect(call(port)).rejects.toMatchObject({ code: 'Unavailable', message, server: SERVER });
    expect(requests).toHaveLength(5);
    expect(waits).toEqual([100, 200, 400, 800]);
  });
});

const get = (port: ClusterPort) => port.get(ref);
const list = (port: ClusterPort) => port.list('Service', 'default');
const named = (change: object) => reply(200, { ...service, metadata: { ...service.metadata, ...change } });
test.each<[string, (port: ClusterPort) => Promise<unknown>, HttpReply]>([
  ['an object of another kind', get, reply(200, { ...service, kind: 'Pod' })],
  ['an object of another version', get, reply(200, { ...service, apiVersion: 'v2' })],
  ['an object with another name', get, named({ name: 'x' })],
  ['an object in another namespace', get, named({ namespace: 'x' })],
  ['a list instead of an object', get, listOf('ServiceList')],
  ['an object instead of a list', list, reply(200, service)],
  ['a list of another kind', list, listOf('PodList')],
  ['a list without items', list, listOf('ServiceList', { items: undefined })],
  ['a list with a null item', list, listOf('ServiceList', { items: [null] })],
  ['a list of another kind instead of a list of Services', listAllServices, listOf('PodList')],
  ['a list of Services without a resourceVersion', listAllServices, listOf('ServiceList', { metadata: {} })],
])('a reply with %s is refused', async (_, call, answer) => {
  await expect(call(portAnswering(answer).port)).rejects.toMatchObject({ code: 'MalformedReply' });
});

const lists = [
  ['list', list],
  ['services', listAllServices],
] as const;
test.each(lists)('the call %s fails with MalformedReply if the list in the reply is partial', async (_name, call) => {
  const metadata = { resourceVersion: '9', continue: 'to/ken' };
  const { port, requests } = portAnswering(listOf('ServiceList', { metadata }));
  const message = expect.stringContaining('a part of the list where all of it was requested');
  await expect(call(port)).rejects.toMatchObject({ code: 'MalformedReply', message });
  expect(requests.map(({ path }) => path)).toEqual([expect.not.stringMatching(/limit|continue/)]);
});

const throttled = { ...failed(429, 'TooManyRequests', 'please slow down'), headers: { 'retry-after': '3' } };
const waiting = (seconds: string) => raw(429, 'slow', { 'retry-after': seconds });

const readers = calls.filter(([name]) => name === 'get' || name === 'services');
test.each(readers)('the call %s waits for the time in a 429 reply, and repeats the request', async (name, call) => {
  const last = name === 'get' ? reply(200, service) : listOf('ServiceList');
  const { port, waits } = portAnswering(waiting('2'), throttled, last);
  await expect(call(port)).resolves.toBeDefined();
  expect(waits).toEqual([2_000, 3_000]);
});

test('a write is repeated after a reply 429, because the server did not execute the write', async () => {
  const { port, requests } = portAnswering(throttled, reply(201, service));
  await expect(port.create(service)).resolves.toMatchObject({ outcome: 'created' });
  expect(requests.map((request) => request.method)).toEqual(['POST', 'POST']);
});

test('a call fails at once if the server requests a wait that would end after the deadline of the pass', async () => {
  const { port, waits } = portAnswering(waiting('120'));
  const message = expect.stringMatching(/priority level|longer intervals/);
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'Throttled', message });
  expect(waits).toEqual([]);
});

test('a call sends no request after the deadline of the pass', async () => {
  const transport = jest.fn(async () => reply(200, service));
  const port = portOver(transport, { deadline: AbortSignal.abort() });
  const message = expect.stringContaining(
    'did not answer "get Service default/kubernetes" before the deadline of the pass',
  );
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'DeadlineExceeded', server: SERVER, message });
  expect(transport).not.toHaveBeenCalled();
});

test.each<[string, string, (port: ClusterPort) => Promise<unknown>, HttpReply | Error, HttpReply]>([
  ['a create', 'alreadyExists', (port) => port.create(service), lost, failed(409, 'AlreadyExists')],
  ['an update', 'conflict', (port) => port.update(service), lost, failed(409, 'Conflict')],
  ['a merge patch', 'updated', (port) => port.mergePatch(ref, {}), failed(504, 'Timeout'), reply(200, service)],
])('%s whose first outcome is unknown is sent again, and returns %s', async (_, outcome, call, first, second) => {
  const { port, requests } = portAnswering(first, second);
  await expect(call(port)).resolves.toMatchObject({ outcome });
  expect(requests).toHaveLength(2);
  expect(requests[1]).toEqual(requests[0]);
});

test.each([
  ['"deleted" after a lost reply', lost, 'deleted'],
  ['"deleted" after a reply 500', failed(500, 'InternalError'), 'deleted'],
  ['"notFound" after a refused connection', refused, 'notFound'],
  ['"notFound" after a reply 429', failed(429, 'TooManyRequests'), 'notFound'],
])('a delete whose second request finds no object returns %s', async (_, first, outcome) => {
  await expect(portAnswering(first, failed(404, 'NotFound')).port.delete(service)).resolves.toBe(outcome);
});

test.each<[string, Partial<KubernetesObject>, 'update' | 'delete']>([
  ['an update without a uid', { metadata: { ...service.metadata, uid: '' } }, 'update'],
  ['an update without a resourceVersion', { metadata: { ...service.metadata, resourceVersion: '' } }, 'update'],
  ['an update of an unknown kind', { kind: 'Pod' }, 'update'],
  ['a delete without a name', { metadata: { ...service.metadata, name: '' } }, 'delete'],
  ['a delete of an object that was not read', { metadata: { name: 'kubernetes', namespace: 'default' } }, 'delete'],
])('the client refuses to send an unsafe write: %s', async (_, change, call) => {
  const { port, requests } = portAnswering();
  await expect(port[call]({ ...service, ...change })).rejects.toBeInstanceOf(TypeError);
  expect(requests).toEqual([]);
});

test('create and update requests contain the field manager kube-bootstrap-controller', async () => {
  const { port, requests } = portAnswering(reply(201, service), reply(200, service));
  await port.create(service);
  await port.update(service);
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /api/v1/namespaces/default/services?fieldManager=kube-bootstrap-controller',
    'PUT /api/v1/namespaces/default/services/kubernetes?fieldManager=kube-bootstrap-controller',
  ]);
});

test('if the deadline ends the wait before a retry, the call fails with the last answer of the server', async () => {
  const port = portOver(async () => failed(503, 'ServiceUnavailable'), {
    sleep: () => Promise.reject(new Error('aborted')),
  });
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'Unavailable' });
});

test('an attempt without an answer ends at the timeout for one attempt, and the call makes another attempt', async () => {
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => AbortSignal.abort());
  afterThisTest(() => timeout.mockRestore());
  const port = portOver(async (_, signal) => {
    timeout.mockImplementation(() => new AbortController().signal);
    if (signal.aborted) throw lost;
    return reply(200, service);
  });
  await expect(port.get(ref)).resolves.toEqual(service);
});

test('a call does not retry a connection that timed out, because more attempts would take time from other clusters', async () => {
  const timedOut = Object.assign(new Error('no connection within 3000 ms'), { code: 'CONNECT_TIMEOUT' });
  const { port, requests } = portAnswering(timedOut);
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(requests).toHaveLength(1);
});

const authority = makeAuthority('the cluster');

/** Returns a Kubernetes client for a server that has this certificate and answers with the Service. */
async function portTo(tls: CertifiedKey, cluster: object = {}) {
  const server = await startFaultServer(() => ({ body: service }), tls);
  afterThisTest(server.stop);
  const access = await accessTo(server.url, { ca: authority.ca, cluster, user: { token: 'secret' } });
  const waits: number[] = [];
  const port = portOver(transportWith(access), { sleep: async (ms) => void waits.push(ms) });
  return { server, port, waits };
}

test('the client sends the request and the credential to a server whose certificate the CA of the kubeconfig issued', async () => {
  const { port, server } = await portTo(authority.issue(['127.0.0.1']));
  await expect(port.get(ref)).resolves.toEqual(service);
  expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'test' });
});

test.each([
  ['of another CA', makeAuthority('another authority').issue(['127.0.0.1'])],
  ['for another server name', authority.issue(['10.0.0.99'])],
  ['that expired', authority.issue(['127.0.0.1'], 2021)],
])('the client sends nothing to a server with a certificate %s, and does not retry', async (_, certified) => {
  const { port, server, waits } = await portTo(certified);
  const message = expect.stringMatching(/certificate-authority-data.*tls-server-name/);
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'TlsFailure', server: SERVER, message });
  expect([server.requests, waits]).toEqual([[], []]);
});

const notFound: readonly (readonly [string, HttpReply])[] = [
  ['a text', raw(404, '404 page not found\n')],
  ['a Status about the path', failed(404, 'NotFound', 'the server could not find the requested resource')],
];

test.each([
  ...notFound,
  ['a Status of another version', reply(404, { kind: 'Status', apiVersion: 'v2', code: 404, reason: 'NotFound' })],
])('a 404 with %s does not mean that a Namespace is absent, because every server has Namespaces', async (_, answer) => {
  const message = expect.stringContaining('server URL in the kubeconfig');
  const error = { code: expect.stringMatching(/^(Rejected|MalformedReply)$/), message };
  await expect(portAnswering(answer).port.get({ kind: 'Namespace', name: 'kube-system' })).rejects.toMatchObject(error);
});

const notServed = [...notFound, ['a Status about the object', failed(404, 'NotFound')] as const];
test.each(notServed)('a 404 with %s means that the ServiceCIDR or the whole kind is absent', async (_, answer) => {
  await expect(portAnswering(answer).port.get({ kind: 'ServiceCIDR', name: 'kubernetes' })).resolves.toBeUndefined();
});
