import { afterEach, describe, expect, test } from '@jest/globals';
import { answerPageRequest } from '../../../cli/page/page-requests.ts';
import {
  type PageServer,
  type PageServerOptions,
  readsOf,
  servePage,
  sharedRead,
} from '../../../cli/page/serve-page.ts';
import type { FleetStatus } from '../../../cli/status/cluster-status.ts';
import { registerCluster } from '../../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aFleetStatus, clustersOfEachKind } from '../../support/a-fleet-status.ts';
import { requestLocal } from '../../support/request-local.ts';
import { aTable } from '../../support/stand-in.ts';

const FLEET = aFleetStatus(clustersOfEachKind());
const READS = {
  readFleet: async () => FLEET,
  readCluster: async (name: string) => FLEET.clusters.find((cluster) => cluster.name === name),
};
const open: PageServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(options: Partial<PageServerOptions> = {}): Promise<PageServer> {
  const server = await servePage({ ...READS, ...options });
  open.push(server);
  return server;
}

interface Asked {
  readonly method?: string;
  readonly host?: string;
  readonly origin?: string;
  readonly cookie?: string;
  readonly authorization?: string;
}

const keyOf = ({ url }: PageServer) => url.split('/').at(-2) ?? '';

/** Requests a path below the key. */
function ask(server: PageServer, path: string, asked: Asked = {}) {
  return askWithoutKey(server, `/${keyOf(server)}${path}`, asked);
}

function askWithoutKey(server: PageServer, path: string, { method = 'GET', ...headers }: Asked = {}) {
  const { host, origin } = new URL(server.url);
  return requestLocal(`${origin}${path}`, { method, headers: { host, authorization: undefined, ...headers } });
}

test('the link shows all clusters, and each cluster has its own path below it', async () => {
  const server = await serve();

  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}\/$/);
  expect(await ask(server, '/')).toMatchObject({
    status: 200,
    body: expect.stringContaining('6 clusters: 2 unhealthy'),
  });
  expect(await ask(server, '/clusters/lab-2?x=1')).toMatchObject({
    status: 200,
    body: expect.stringContaining('<h1>lab-2</h1>'),
  });
});

test('the page of an unknown cluster reports that the table has no such cluster', async () => {
  expect(await ask(await serve(), '/clusters/prod-eu-3')).toMatchObject({
    status: 404,
    body: expect.stringContaining('The table has no cluster of this name.'),
  });
});

test.each(['/clusters/', '/clusters/a/b', '/%ff', '//', '/a/../etc/passwd'])(
  'the path %s does not exist',
  async (path) => {
    expect(await ask(await serve(), path)).toMatchObject({ status: 404 });
  },
);

test.each(['POST', 'DELETE', 'OPTIONS'])('the method %s is refused and changes nothing', async (method) => {
  const readFleet = () => Promise.reject(new Error('the table was read'));
  const server = await serve({ readFleet });

  expect(await ask(server, '/', { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
});

describe('the key of the page', () => {
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
    ['none, but a path,', '/clusters/lab-2', {}],
    ['an empty one', '//', {}],
    ['another one', '/secret/clusters/lab-2', {}],
    ['the start of it', '/kkkkkkkkkkkkkkkk/', {}],
    ['it in a query', '/?key=kkkkkkkkkkkkkkkkkkkk', {}],
    ['it in a cookie', '/', { cookie: 'kbctl-page=kkkkkkkkkkkkkkkkkkkk; key=kkkkkkkkkkkkkkkkkkkk' }],
    ['another bearer token', '/metrics', { authorization: 'Bearer secret' }],
  ])('the status page refuses a request with %s', async (_, path, headers) => {
    const { status, body } = await askWithoutKey(await serve({ key: 'k'.repeat(20) }), path, headers);

    expect({ status, body }).toEqual({
      status: 401,
      body: 'Open the link that kbctl printed: it has the key of this page.\n',
    });
  });

  test('the key of the page can be set, and sent as a bearer token by a scraper', async () => {
    const key = 'k'.repeat(16);
    const server = await serve({ key });

    expect(await askWithoutKey(server, '/metrics', { authorization: `Bearer ${key}` })).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' },
      body: expect.stringContaining('kube_bootstrap_controller_cluster_health{cluster="lab-2",health="good"}'),
    });
  });
});

test('the reply to HEAD has no body', async () => {
  expect(await ask(await serve(), '/', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
});

test.each(['example.com', '127.0.0.1', '127.0.0.1.example.com', 'localhost:1'])(
  'a request with the host name %s is refused, and its answer contains no cluster name',
  async (host) => {
    const answer = await ask(await serve(), '/', { host });

    expect(answer.status).toBe(421);
    expect(answer.body).not.toContain('prod-eu-1');
  },
);

test.each([
  { port: 80, status: 200 },
  { port: 8080, status: 421 },
])('a host name without a port gets the status $status at port $port', async ({ port, status }) => {
  const sources = {
    fleet: async () => FLEET,
    cluster: () => Promise.reject(new Error('not read')),
    pollMs: 1_000,
    port,
    key: 'k',
  };
  const request = { method: 'GET', url: '/k/', headers: { host: '127.0.0.1' } };

  expect(await answerPageRequest(request, sources)).toMatchObject({ status });
});

test('the status page accepts a request with the host name localhost', async () => {
  const server = await serve();

  expect(await ask(server, '/', { host: `localhost:${new URL(server.url).port}` })).toMatchObject({ status: 200 });
});

test.each(['https://evil.example', 'null'])('a page of the origin %s cannot read the status', async (origin) => {
  const answer = await ask(await serve(), '/', { origin });

  expect(answer.status).toBe(403);
  expect(answer.body).not.toContain('prod-eu-1');
});

test('no other site frames, reads or keeps the page', async () => {
  const { headers } = await ask(await serve(), '/');

  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'content-security-policy': expect.stringMatching(/^default-src 'none'; .*; frame-ancestors 'none'$/),
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
});

test('concurrent requests share one read', async () => {
  const waiting = Promise.withResolvers<FleetStatus>();
  let reads = 0;
  const server = await serve({
    // Slow machines connect late.
    nowMs: () => 0,
    readFleet: () => {
      reads++;
      return waiting.promise;
    },
  });
  const asked = ['/', '/', '/metrics'].map((path) => ask(server, path));

  waiting.resolve(FLEET);

  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(reads).toBe(1);
});

test('a table that cannot be read is an error until it can be read', async () => {
  const answers = [() => Promise.reject(new Error('no answer'))];
  const server = await serve({ readFleet: () => (answers.shift() ?? (async () => FLEET))(), freshMs: 0 });

  expect(await ask(server, '/')).toMatchObject({ status: 503, body: 'The table cannot be read: no answer\n' });
  expect(await ask(server, '/')).toMatchObject({ status: 200 });
});

test('a port in use is an error with its resolution', async () => {
  const server = await serve();
  const port = Number(new URL(server.url).port);

  await expect(serve({ port })).rejects.toThrow(
    /^The page cannot be served at port \d+ \(EADDRINUSE\): choose another, or 0 for a free one\.$/,
  );
});

test('closing the server aborts a read', async () => {
  const signals: AbortSignal[] = [];
  const begun = Promise.withResolvers<void>();
  const server = await servePage({
    ...READS,
    readFleet: (signal) => {
      signals.push(signal);
      begun.resolve();
      return new Promise(() => {});
    },
  });
  const asked = ask(server, '/').catch(() => undefined);
  await begun.promise;

  await server.close();

  await asked;
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test('a live page of all clusters does not read their ranges', async () => {
  const table = aTable();
  await registerCluster(table, aClusterSpec({ name: 'a' }));
  const lists: string[] = [];
  const counted: KeyValueTable = {
    ...table,
    list: (cluster, prefix) => {
      if (cluster === 'a') lists.push(prefix);
      return table.list(cluster, prefix);
    },
  };
  const { readFleet } = readsOf(
    () => counted,
    't',
    () => 0,
  );
  expect((await readFleet(new AbortController().signal)).clusters).toHaveLength(1);
  expect(lists).toEqual(['runs/']);
});

function aRead(answers: readonly (string | Error)[]) {
  const left = [...answers];
  const clock = { nowMs: 1_000 };
  const read = async () => {
    const answer = left.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return {
    clock,
    get: sharedRead(read, { freshMs: 1_000, nowMs: () => clock.nowMs, ended: new AbortController().signal }),
  };
}

test('a result is read again after its time', async () => {
  const { get, clock } = aRead(['first', 'second']);
  await get();

  clock.nowMs = 1_999;
  expect(await get()).toBe('first');
  clock.nowMs = 2_000;
  expect(await get()).toBe('second');
});

test('an error is kept as long as a result', async () => {
  const { get, clock } = aRead([new Error('no answer'), 'first']);

  await expect(get()).rejects.toThrow('no answer');
  await expect(get()).rejects.toThrow('no answer');
  clock.nowMs = 2_000;
  expect(await get()).toBe('first');
});
