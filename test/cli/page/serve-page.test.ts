import { expect, test } from '@jest/globals';
import {
  answerPageRequest,
  type PageServer,
  servePage,
  sharedRead,
  statusReader,
} from '../../../cli/page/serve-page.ts';
import type { FleetStatus } from '../../../cli/status/cluster-status.ts';
import { registerCluster } from '../../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aFleetStatus, clustersOfEachKind } from '../../support/a-fleet-status.ts';
import { afterThisTest } from '../../support/after-this-test.ts';
import { memoryTable } from '../../support/memory-table.ts';
import { requestLocal } from '../../support/request-local.ts';

const FLEET = aFleetStatus(clustersOfEachKind());
const read = async (_: AbortSignal, name?: string): Promise<FleetStatus> => ({
  ...FLEET,
  clusters: FLEET.clusters.filter((cluster) => name === undefined || cluster.name === name),
});

async function serve(options: Partial<Parameters<typeof servePage>[0]> = {}): Promise<PageServer> {
  const server = await servePage({ read, ...options });
  afterThisTest(() => server.close());
  return server;
}

type Asked = { readonly method?: string } & Readonly<Record<string, string>>;

const keyOf = ({ url }: PageServer) => url.split('/').at(-2) ?? '';

function ask(server: PageServer, path: string, asked: Asked = {}) {
  return askWithoutKey(server, `/${keyOf(server)}${path}`, asked);
}

function askWithoutKey(server: PageServer, path: string, { method = 'GET', ...headers }: Asked = {}) {
  const { host, origin } = new URL(server.url);
  return requestLocal(`${origin}${path}`, { method, headers: { host, authorization: undefined, ...headers } });
}

const shows = (body: string) => ({ status: 200, body: expect.stringContaining(body) });

test('the URL of the server shows all clusters, each cluster has its page on a path below that URL, and the reply to HEAD has no body', async () => {
  const server = await serve();
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}\/$/);
  expect(await ask(server, '/')).toMatchObject(shows('6 clusters: 2 unhealthy'));
  expect(await ask(server, '/clusters/lab-2?x=1')).toMatchObject(shows('<h1>lab-2</h1>'));
  expect(await ask(server, '/', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
});

test('the URL without its last slash leads to the page', async () => {
  const server = await serve();
  const { pathname } = new URL(server.url);
  expect(await ask(server, '')).toMatchObject({ status: 308, headers: { location: pathname } });
});

test.each([
  ['/clusters/prod-eu-3', 'The table has no cluster of this name.'],
  ...['/clusters/', '/clusters/a/b', '/%ff', '//', '/a/../etc/passwd'].map((path) => [path, 'Not found.']),
])('the path %s does not exist: %s', async (path, reason) => {
  expect(await ask(await serve(), path)).toMatchObject({ status: 404, body: expect.stringContaining(reason) });
});

test.each(['POST', 'DELETE', 'OPTIONS'])('the method %s is refused and changes nothing', async (method) => {
  const server = await serve({ read: () => Promise.reject(new Error('the table was read')) });
  expect(await ask(server, '/', { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
});

test('the key of the page is in no cookie, link or text of the page', async () => {
  const server = await serve();
  for (const path of ['/', '/clusters/lab-2', '/clusters/unknown', '/metrics', '/elsewhere']) {
    const { headers, body } = await ask(server, path);
    expect(JSON.stringify([headers, body])).not.toContain(keyOf(server));
    expect(headers).not.toHaveProperty('set-cookie');
  }
});

test.each<[string, string, Asked]>([
  ['none', '/', {}],
  ['an empty key', '//', {}],
  ['another key', '/secret/clusters/lab-2', {}],
  ['only the start of the key', '/kkkkkkkkkkkkkkkk/', {}],
  ['the key in a query', '/?key=kkkkkkkkkkkkkkkkkkkk', {}],
  ['the key in a cookie', '/', { cookie: 'kbctl-page=kkkkkkkkkkkkkkkkkkkk; key=kkkkkkkkkkkkkkkkkkkk' }],
  ['another bearer token', '/metrics', { authorization: 'Bearer secret' }],
])('the status page refuses a request without the right key: %s', async (_, path, headers) => {
  const body = 'Open the link that kbctl printed: it has the key of this page.\n';
  const answer = await askWithoutKey(await serve({ key: 'k'.repeat(20) }), path, headers);
  expect(answer).toMatchObject({ status: 401, body });
});

test('the key of the page can be set, and a scraper can send the key as a bearer token', async () => {
  const key = 'k'.repeat(16);
  const server = await serve({ key });
  const answer = await askWithoutKey(server, '/metrics', { authorization: `Bearer ${key}` });
  expect(answer).toMatchObject(shows('kube_bootstrap_controller_cluster_health{cluster="lab-2",health="good"}'));
  expect(answer.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
});

test.each([
  { headers: { host: 'example.com' }, status: 421 },
  { headers: { host: '127.0.0.1.example.com' }, status: 421 },
  { headers: { host: 'localhost:1' }, status: 421 },
  { headers: { origin: 'https://evil.example' }, status: 403 },
])('a request with $headers is refused with $status, and its answer contains no cluster name', async (refused) => {
  const answer = await ask(await serve(), '/', refused.headers);
  expect(answer.status).toBe(refused.status);
  expect(answer.body).not.toContain('prod-eu-1');
});

test.each([
  { host: '127.0.0.1', port: 80, status: 200 },
  { host: '127.0.0.1', port: 8080, status: 421 },
  { host: 'LOCALHOST:8080', port: 8080, status: 200 },
])('a request with the host $host gets the status $status at port $port', async ({ host, port, status }) => {
  const sources = { read: async () => FLEET, pollMs: 1_000, port, key: 'k' };
  const request = { method: 'GET', url: '/k/', headers: { host } };
  expect(await answerPageRequest(request, sources)).toMatchObject({ status });
});

test('no other site can frame or read the page, and no cache stores it', async () => {
  const { headers } = await ask(await serve(), '/');
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'content-security-policy': expect.stringMatching(/^default-src 'none'; .*; frame-ancestors 'none'$/),
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
});

test('concurrent requests to the page cause one read of the table', async () => {
  const waiting = Promise.withResolvers<FleetStatus>();
  let reads = 0;
  const waitingRead = () => {
    reads++;
    return waiting.promise;
  };
  // The clock stands still, so that no request on a slow machine arrives after the cached result has expired.
  const server = await serve({ nowMs: () => 0, read: waitingRead });
  const asked = ['/', '/', '/metrics'].map((path) => ask(server, path));

  waiting.resolve(FLEET);

  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(reads).toBe(1);
});

test('the page answers with an error while the table cannot be read', async () => {
  const answers = [() => Promise.reject(new Error('no answer'))];
  const times = [0, 1_000, 1_000];
  const nowMs = () => times.shift() ?? 1_000;
  const server = await serve({ read: () => (answers.shift() ?? (async () => FLEET))(), nowMs });
  expect(await ask(server, '/')).toMatchObject({ status: 503, body: 'The table cannot be read: no answer\n' });
  expect(await ask(server, '/')).toMatchObject({ status: 200 });
});

test('if the port is in use, the server does not start and the error contains the resolution', async () => {
  const server = await serve();
  const port = Number(new URL(server.url).port);
  await expect(serve({ port })).rejects.toThrow(
    /^The page cannot be served at port \d+ of 127\.0\.0\.1 \(EADDRINUSE\): choose another port or address\.$/,
  );
});

test('closing the server of the page aborts a running read of the table', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const server = await servePage({
    read: (signal) => {
      begun.resolve(signal);
      return new Promise<never>(() => {});
    },
  });
  const asked = ask(server, '/').catch(() => undefined);
  const signal = await begun.promise;

  await server.close();

  await asked;
  expect(signal.aborted).toBe(true);
});

test.each([
  ['all clusters does not read their ranges', undefined, ['runs/']],
  ['one cluster reads its ranges', 'a', ['runs/', 'ranges/']],
])('the page of %s from the table', async (_, cluster, prefixes) => {
  const table = memoryTable();
  await registerCluster(table, aClusterSpec({ name: 'a' }));
  const lists: string[] = [];
  const list: KeyValueTable['list'] = (of, prefix) => {
    if (of === 'a') lists.push(prefix);
    return table.list(of, prefix);
  };
  const read = statusReader(
    () => ({ ...table, list }),
    't',
    () => 0,
  );
  expect((await read(new AbortController().signal, cluster)).clusters).toHaveLength(1);
  expect(lists.toSorted()).toEqual(prefixes.toSorted());
});

test.each<[string, () => Promise<string>]>([
  ['result', async () => 'first'],
  ['error', () => Promise.reject(new Error('first'))],
])('sharedRead returns the same %s until it has expired, and then reads again', async (_, answer) => {
  const answers = [answer, async () => 'second'];
  const clock = { nowMs: 1_000 };
  const { signal } = new AbortController();
  const get = sharedRead(
    async () => answers.shift()?.(),
    () => clock.nowMs,
    signal,
  );
  const read = () => get().catch(({ message }: Error) => message);
  await read();
  clock.nowMs = 1_999;
  expect(await read()).toBe('first');
  clock.nowMs = 2_000;
  expect(await read()).toBe('second');
});
