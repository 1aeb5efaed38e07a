import { describe, expect, test } from '@jest/globals';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/item-readers.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { failure, type Reaction, type SeenRequest, startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { portOver, ref, service } from './port-answering.ts';

const authority = makeAuthority('the cluster');

interface Set {
  readonly tls?: CertifiedKey;
  readonly kubeconfig?: Parameters<typeof kubeconfigTo>[1];
  readonly deadline?: AbortSignal;
}

/** Starts a server with these answers, and returns a port to it that does not wait between attempts. */
async function portTo(
  react: (request: SeenRequest, index: number) => Reaction,
  { tls, kubeconfig, deadline = new AbortController().signal }: Set = {},
) {
  const server = await startFaultServer(react, tls);
  const connections = new ApiServerConnections();
  afterThisTest(server.stop);
  afterThisTest(() => connections.close());
  const waits: number[] = [];
  const access = await parseKubeconfig(kubeconfigTo(server.url, kubeconfig), 'of the test');
  const port = portOver(connections.transport(access), {
    server: server.url,
    deadline,
    sleep: async (ms) => void waits.push(ms),
    random: () => 0,
  });
  return { server, port, waits };
}

function trusting(tls: CertifiedKey, cluster: object = {}): Set {
  return { tls, kubeconfig: { ca: authority.ca, cluster, user: { token: 'secret' } } };
}

/** All calls of the port. */
const calls: readonly (readonly [string, (port: ClusterPort) => Promise<unknown>])[] = [
  ['get', (port) => port.get(ref)],
  ['list', (port) => port.list('Service', 'default')],
  ['create', (port) => port.create(service)],
  ['update', (port) => port.update(service)],
  ['mergePatch', (port) => port.mergePatch(ref, {})],
  ['delete', (port) => port.delete(service)],
  ['services', (port) => listAllServices(port)],
];

function okOf(kind: string) {
  return { body: { apiVersion: 'v1', kind, metadata: { resourceVersion: '1' }, items: [] } };
}

describe.each<[string, (request: SeenRequest) => Reaction, string, RegExp]>([
  ['401', () => failure(401, 'Unauthorized'), 'Unauthorized', /credential in the kubeconfig.*replace it/],
  ['403', () => failure(403, 'Forbidden', 'User "x" cannot'), 'Forbidden', /User "x" cannot.*Grant/],
  ['400', () => failure(400, 'BadRequest', 'what is this'), 'Rejected', /what is this/],
  ['405 without a Status', () => ({ status: 405, body: '<html>no</html>' }), 'MalformedReply', /405 without a Status/],
  ['a redirect', () => ({ status: 302, headers: { location: 'https://10.0.0.1/' } }), 'MalformedReply', /302 without/],
  ['a login page', () => ({ body: '<html>please log in</html>' }), 'MalformedReply', /server URL in the kubeconfig/],
  ['an empty body', () => ({ body: '' }), 'MalformedReply', /unlike a Kubernetes API server/],
  ['half of a JSON', () => ({ body: '{"kind":"Service","apiVersion":"v1","meta' }), 'MalformedReply', /not all of it/],
])('a faulty reply (%s)', (_, react, code, message) => {
  test.each(calls)('the call %s fails with a code and a message that contains the resolution', async (_name, call) => {
    const { port, server } = await portTo(react);
    await expect(call(port)).rejects.toMatchObject({
      name: 'ClusterError',
      code,
      message: expect.stringMatching(message),
    });
    expect(server.requests).toHaveLength(1);
  });
});

describe.each<[string, Reaction]>([
  ['500', failure(500, 'InternalError', 'etcdserver: request timed out')],
  ['503 without a Status', { status: 503, body: 'upstream connect error' }],
  ['a connection that is dropped', { reset: true }],
  ['a reply that is cut off', { cutOff: { ...service, padding: 'x'.repeat(5_000) } }],
])('a temporary fault (%s)', (_, reaction) => {
  test.each(calls)('the call %s is tried five times, and then fails with Unavailable', async (_name, call) => {
    const { port, server, waits } = await portTo(() => reaction);
    await expect(call(port)).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining(server.url),
    });
    expect(server.requests).toHaveLength(5);
    expect(waits).toEqual([100, 200, 400, 800]);
  });
});

describe('a reply of the wrong kind', () => {
  const get = (port: ClusterPort) => port.get(ref);
  const list = (port: ClusterPort) => port.list('Service', 'default');
  const named = (change: object) => ({ ...service, metadata: { ...service.metadata, ...change } });
  const listOf = (kind: string, fields: object) => ({ ...okOf(kind).body, ...fields });
  test.each<[string, (port: ClusterPort) => Promise<unknown>, object]>([
    ['an object of another kind', get, { ...service, kind: 'Pod' }],
    ['an object of another version', get, { ...service, apiVersion: 'v2' }],
    ['an object with another name', get, named({ name: 'x' })],
    ['an object in another namespace', get, named({ namespace: 'x' })],
    ['a list instead of an object', get, okOf('ServiceList').body],
    ['an object instead of a list', list, service],
    ['a list of another kind', list, okOf('PodList').body],
    ['a list without items', list, listOf('ServiceList', { items: undefined })],
    ['a list with a null item', list, listOf('ServiceList', { items: [null] })],
    ['a list of another kind for the Services', listAllServices, okOf('PodList').body],
    ['Services without a resourceVersion', listAllServices, listOf('ServiceList', { metadata: {} })],
  ])('a reply with %s is refused', async (_, call, body) => {
    const { port } = await portTo(() => ({ body }));
    await expect(call(port)).rejects.toMatchObject({ code: 'MalformedReply' });
  });
});

describe('429', () => {
  const throttled = failure(429, 'TooManyRequests', 'please slow down', { retryAfterSeconds: 3 });

  test.each(calls.filter(([name]) => name === 'get' || name === 'services'))(
    '%s waits and repeats the request after a 429',
    async (name, call) => {
      const last = name === 'get' ? { body: service } : okOf('ServiceList');
      const { port, waits } = await portTo((_, index) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '2' }, body: 'slow' } : index === 1 ? throttled : last,
      );
      await expect(call(port)).resolves.toBeDefined();
      expect(waits).toEqual([2_000, 3_000]);
    },
  );

  test('a write is repeated after a reply 429, because the server did not execute it', async () => {
    const { port, server } = await portTo((_, index) => (index === 0 ? throttled : { status: 201, body: service }));
    await expect(port.create(service)).resolves.toMatchObject({ outcome: 'created' });
    expect(server.requests.map((request) => request.method)).toEqual(['POST', 'POST']);
  });

  test('a call fails at once if the server requests a longer wait than the time of the pass', async () => {
    const { port, waits } = await portTo(() => ({ status: 429, headers: { 'retry-after': '120' }, body: 'slow' }));
    await expect(port.get(ref)).rejects.toMatchObject({
      code: 'Throttled',
      message: expect.stringMatching(/priority level|longer intervals/),
    });
    expect(waits).toEqual([]);
  });
});

test('a call sends no request after the deadline of the pass', async () => {
  const { port, server } = await portTo(() => ({ body: service }), { deadline: AbortSignal.abort() });
  await expect(port.get(ref)).rejects.toMatchObject({ code: 'DeadlineExceeded' });
  expect(server.requests).toEqual([]);
});

describe('TLS', () => {
  test("a server with a certificate of the kubeconfig's CA gets the request and the credential", async () => {
    const { port, server } = await portTo(() => ({ body: service }), trusting(authority.issue(['127.0.0.1'])));
    await expect(port.get(ref)).resolves.toEqual(service);
    expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'test' });
  });

  test('a certificate for the server name of the kubeconfig is accepted', async () => {
    const certified = authority.issue(['api.example.com']);
    const { port } = await portTo(
      () => ({ body: service }),
      trusting(certified, { 'tls-server-name': 'api.example.com' }),
    );
    await expect(port.get(ref)).resolves.toEqual(service);
  });

  test.each([
    ['of another CA', makeAuthority('somebody else').issue(['127.0.0.1'])],
    ['for another name', authority.issue(['10.0.0.99'])],
    ['that expired', authority.issue(['127.0.0.1'], 2021)],
  ])(
    'a server with a certificate %s gets no request and no credential, and the call is not retried',
    async (_, certified) => {
      const { port, server, waits } = await portTo(() => ({ body: service }), trusting(certified));
      await expect(port.get(ref)).rejects.toMatchObject({
        code: 'TlsFailure',
        message: expect.stringMatching(/certificate-authority-data.*tls-server-name/),
      });
      expect(server.requests).toEqual([]);
      expect(waits).toEqual([]);
    },
  );
});

test.each(calls.filter(([name]) => name === 'list' || name === 'services'))(
  'a reply with only a part of the list is malformed for the call %s',
  async (_name, call) => {
    const metadata = { resourceVersion: '9', continue: 'to/ken' };
    const { port, server } = await portTo(() => ({ body: { ...okOf('ServiceList').body, metadata } }));
    await expect(call(port)).rejects.toMatchObject({
      code: 'MalformedReply',
      message: expect.stringMatching(/a part of the list where all of it was requested/),
    });
    expect(server.requests.map(({ path }) => path)).toEqual([expect.not.stringMatching(/limit|continue/)]);
  },
);
