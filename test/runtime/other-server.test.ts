import { expect, jest, test } from '@jest/globals';
import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import { type ApiServerAccess, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import type { Transport } from '../../lib/kubernetes/transport.ts';
import { orOther, otherServers, renewingTransport } from '../../lib/runtime/pass-transport.ts';
import type { ClusterSpec, Loop } from '../../lib/spec/cluster-spec.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { anAccess } from '../support/an-access.ts';
import { type Reaction, startFaultServer } from '../support/api-fault-server.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';

const authority = makeAuthority('the cluster');
const NAMESPACE = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default', resourceVersion: '1' } };
const OWN = 'https://10.0.0.1:6443';

const access = async (server = OWN, cluster: object = { 'tls-server-name': 'api.example.com' }) =>
  parseKubeconfig(kubeconfigTo(server, { cluster, user: { token: 'secret' } }), 'of the test');
const spec = (apiServers: ClusterSpec['apiServers']) => aClusterSpec({ apiServers });

test('a pass is allowed to use the other API servers of the spec, and verifies their certificates for the server name of the kubeconfig', async () => {
  const host = aHost('other.example.com');
  const group = aHost('arn:aws:elasticloadbalancing', { targetGroupArn: 'arn' });
  const servers = [aServer('10.0.0.1'), aServer('10.0.0.2'), aServer('2001:db8::2'), host, group];
  const verified = { serverName: 'api.example.com', authenticate: false };
  expect(otherServers(spec(servers), await access())).toEqual([
    { url: 'https://10.0.0.2:6443/readyz', ...verified },
    { url: 'https://[2001:db8::2]:6443/readyz', ...verified },
    { url: 'https://other.example.com:6443/readyz', ...verified },
  ]);
  const [first] = otherServers(spec(servers), await access(OWN, {}));
  expect(first).toMatchObject({ serverName: '10.0.0.1' });
});

test.each([
  ['does not use a server at a probe URL whose host is no API server of the spec', 'https://10.0.0.9:6443/readyz', 0],
  ['does not use a server at a probe URL without TLS', 'http://10.0.0.2:8080/readyz', 0],
  ['uses a server at a probe URL with another port of an API server of the spec', 'https://10.0.0.2:7443/readyz', 1],
])('a pass %s', async (_, url, count) => {
  expect(otherServers(spec([aServer('10.0.0.2', { url })]), await access())).toHaveLength(count);
});

test.each([
  ['uses', 'https://10.0.0.9:6443/readyz', 1],
  ['uses', 'https://10.0.0.9:6443/readyz/ping', 1],
  ['does not use', 'https://10.0.0.9:6443/k8s/clusters/a/readyz', 0],
  ['does not use', 'http://10.0.0.9:8080/readyz', 0],
])('a pass %s a server that answered in this pass at the probe URL %s', async (_, url, count) => {
  const servers = spec([aServer('10.0.0.2', { url })]);
  expect(otherServers(servers, await access(), new Set([url]))).toHaveLength(count);
  expect(otherServers(servers, await access(), new Set(['https://10.0.0.8:6443/readyz']))).toEqual([]);
});

test.each<[string, Partial<ApiServerAccess>]>([
  ['a token for only one server, as with webIdentity', { isIssuedForServer: true }],
  ['disabled TLS verification', { tls: () => ({ rejectUnauthorized: false }) }],
  ['a server URL with a path, because the server is then a proxy', { basePath: '/k8s/clusters/a' }],
  ['a server without TLS', { server: 'http://10.0.0.1:8080' }],
])('a pass uses no other API server if its kubeconfig has %s', async (_, overrides) => {
  const servers = spec([aServer('10.0.0.2'), aServer('10.0.0.3', { url: 'https://10.0.0.9:6443/readyz' })]);
  const answered = { has: () => true };
  expect(otherServers(servers, { ...(await access()), ...overrides }, answered)).toEqual([]);
});

/** Runs a call of a pass while its API server is down. Returns the other API server, the result and the warnings. */
async function passBy({
  react = () => ({ body: NAMESPACE }),
  tls = authority.issue(['127.0.0.1']),
  loop = 'kubernetes-service',
  cluster = {},
  probeHost,
}: {
  readonly react?: () => Reaction;
  readonly tls?: CertifiedKey;
  readonly loop?: Loop;
  readonly cluster?: object;
  /** If set, the spec has another address, with a `probe.url` on this host, which the pass probes first. */
  readonly probeHost?: string;
}) {
  const other = await startFaultServer(react, tls);
  afterThisTest(other.stop);
  const text = kubeconfigTo('https://127.0.0.1:1', { ca: authority.ca, cluster, user: { token: 'secret' } });
  const { connect, warnings } = aProcess(() => parseKubeconfig(text, 'of the test'));
  const url = `https://${probeHost}:${new URL(other.url).port}/readyz`;
  const apiServers = [probeHost === undefined ? aServer('127.0.0.1') : aServer('10.0.0.2', { url })];
  const service = { securePort: Number(new URL(other.url).port) };
  const { kubernetes, probe } = await connect(aClusterSpec({ apiServers, service }), loop);
  if (probeHost !== undefined) await probe({ url, authenticate: false });
  const [got] = await Promise.allSettled([kubernetes.get({ kind: 'Namespace', name: 'default' })]);
  return { other, got, warnings };
}

test.each<Loop>(['kubernetes-service', 'system-namespaces'])('a pass of %s uses another API server', async (loop) => {
  const { other, got, warnings } = await passBy({ loop });
  expect(got).toMatchObject({ status: 'fulfilled', value: NAMESPACE });
  expect(other.requests.map(({ path, headers }) => [path, headers['authorization']])).toEqual([
    ['/readyz', undefined],
    ['/api/v1/namespaces/default', 'Bearer secret'],
  ]);
  expect(warnings).toEqual([expect.stringMatching(/^https:\/\/127.0.0.1:1 does not answer: passes use https:/)]);
});

test('if a server answered in this pass, the pass uses the probe URL of this server, even if the host of the URL is not the address of the server', async () => {
  const { other, got } = await passBy({ probeHost: '127.0.0.1' });
  expect(got).toMatchObject({ status: 'fulfilled', value: NAMESPACE });
  const sent = other.requests.map(({ headers }) => headers['authorization']);
  expect(sent).toEqual([undefined, undefined, 'Bearer secret']);
});

const NAMED = { 'tls-server-name': 'api.example.com' };
test.each<[string, Parameters<typeof passBy>[0], string[]]>([
  ['at a probe URL whose certificate is for another name', { probeHost: '127.0.0.1', cluster: NAMED }, ['/readyz']],
  ['at a probe URL in cluster-ip-repair', { probeHost: '127.0.0.1', loop: 'cluster-ip-repair' }, ['/readyz']],
  ['whose certificate is of another CA', { tls: makeAuthority('another authority').issue(['127.0.0.1']) }, []],
  ['whose certificate is for another server name', { cluster: NAMED }, []],
  ['that is not ready', { react: () => ({ status: 500, body: '[-]etcd failed' }) }, ['/readyz']],
  ['if it is a pass of cluster-ip-repair', { loop: 'cluster-ip-repair' }, []],
  ['if it is a pass of node-port-repair', { loop: 'node-port-repair' }, []],
])('a pass fails and does not use another API server %s', async (_, options, paths) => {
  const { other, got } = await passBy(options);
  expect(got).toMatchObject({ status: 'rejected', reason: { code: 'Unavailable' } });
  expect(other.requests.map(({ path }) => path)).toEqual(paths);
});

const answered: HttpReply = { status: 200, headers: {}, body: [] };
const never = new AbortController().signal;
const other: Transport = async () => answered;
const get = { method: 'GET', path: '/', headers: {} } as const;

test('a request is sent to another server if the server of the kubeconfig accepts the connection but does not answer within 3 s', async () => {
  jest.useFakeTimers();
  afterThisTest(() => jest.useRealTimers());
  const silent: Transport = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const transport = orOther(silent, never, async () => other);
  const got = transport(get, never);
  await jest.advanceTimersByTimeAsync(2_999);
  await expect(Promise.race([got, Promise.resolve('waits')])).resolves.toBe('waits');
  await jest.advanceTimersByTimeAsync(1);
  await expect(got).resolves.toBe(answered);
  await expect(transport(get, never)).resolves.toBe(answered);
});

test('if the first server might have executed a write, this write is not sent to another server, but the next write is sent to another server', async () => {
  const lost: Transport = () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  const refused: Transport = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  const put = { ...get, method: 'PUT' } as const;
  const transport = orOther(lost, never, async () => other);
  await expect(transport(put, never)).rejects.toThrow('reset');
  await expect(transport(put, never)).resolves.toBe(answered);
  await expect(orOther(refused, never, async () => other)(put, never)).resolves.toBe(answered);
});

test('after an answer with a status of 500 or more, the next attempt uses another server', async () => {
  const failing: Transport = async () => ({ ...answered, status: 503 });
  const transport = orOther(failing, never, async () => other);
  await expect(transport(get, never)).resolves.toMatchObject({ status: 503 });
  await expect(transport(get, never)).resolves.toBe(answered);
});

test('if no other server can be used, a pass searches for one only once, however many requests fail', async () => {
  const refused: Transport = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  const find = jest.fn(async () => undefined);
  const transport = orOther(refused, never, find);
  for (let tries = 0; tries < 3; tries += 1) await expect(transport(get, never)).rejects.toThrow('refused');
  expect(find).toHaveBeenCalledTimes(1);
});

test('the body of a 401 reply is closed before the request is repeated, so that the connection can be used again', async () => {
  const events: string[] = [];
  async function* refusal() {
    try {
      yield Buffer.from('Unauthorized');
      yield Buffer.from('and more');
    } finally {
      events.push('ended');
    }
  }
  const kubeconfig = {
    current: () => anAccess({ context: 'old' }),
    newerThan: async () => anAccess({ context: 'newer' }),
    forget: () => undefined,
    isProvenAgainst: () => true,
    confirm: async () => true,
  };
  const transport = renewingTransport(kubeconfig, ({ context }) => async () => {
    events.push(context);
    return { status: context === 'old' ? 401 : 200, headers: {}, body: refusal() };
  });
  const { signal } = new AbortController();
  await expect(transport({ method: 'GET', path: '/', headers: {} }, signal)).resolves.toMatchObject({ status: 200 });
  expect(events).toEqual(['old', 'ended', 'newer']);
});
