import { afterEach, describe, expect, test } from '@jest/globals';
import { type PageServer, type PageServerOptions, readsOf, servePage } from '../../../cli/page/serve-page.ts';
import type { FleetStatus } from '../../../lib/status/cluster-status.ts';
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

const keyOf = ({ url }: PageServer) => new URL(url).searchParams.get('key') ?? '';
const cookieOf = (server: PageServer) => `kbctl-page-${new URL(server.url).port}=${keyOf(server)}`;

/** With the key, unless `cookie` is given. */
function ask(server: PageServer, path: string, { method = 'GET', ...headers }: Asked = {}) {
  const { host, origin } = new URL(server.url);
  return requestLocal(`${origin}${path}`, {
    method,
    headers: { host, authorization: undefined, cookie: cookieOf(server), ...headers },
  });
}

test('all clusters are at /, and each at its own path', async () => {
  const server = await serve();

  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?key=[\w-]{24}$/);
  expect(await ask(server, '/')).toMatchObject({ status: 200, body: expect.stringContaining('2 of 6 clusters need') });
  expect(await ask(server, '/clusters/lab-2?x=1')).toMatchObject({
    status: 200,
    body: expect.stringContaining('<h1><bdi>lab-2</bdi></h1>'),
  });
});

test('the page of an unknown cluster says so', async () => {
  expect(await ask(await serve(), '/clusters/prod-eu-3')).toMatchObject({
    status: 404,
    body: expect.stringContaining('The table has no cluster of this name.'),
  });
});

test.each(['/clusters/', '/clusters/a/b', '/%ff', '//', '/../etc/passwd'])('nothing is at %s', async (path) => {
  expect(await ask(await serve(), path)).toMatchObject({ status: 404 });
});

test.each(['POST', 'DELETE', 'OPTIONS'])('%s changes nothing', async (method) => {
  const readFleet = () => Promise.reject(new Error('the table was read'));
  const server = await serve({ readFleet });

  expect(await ask(server, '/', { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
});

describe('the key of the page', () => {
  test('moves from the link to a cookie of this site, and out of the address bar', async () => {
    const server = await serve();
    const { pathname, search } = new URL(server.url);

    expect(await ask(server, `${pathname}${search}`, { cookie: '' })).toMatchObject({
      status: 303,
      headers: { location: '/', 'set-cookie': [`${cookieOf(server)}; HttpOnly; SameSite=Strict; Path=/`] },
      body: '',
    });
  });

  test.each<[string, Asked, string]>([
    ['none', {}, '/'],
    ['an empty one', {}, '/?key='],
    ['another one', { cookie: 'kbctl-page-1=secret' }, '/clusters/lab-2?key=secret'],
    ['another bearer token', { authorization: 'Bearer secret' }, '/metrics'],
  ])('is required: %s learns nothing', async (_, headers, path) => {
    const { status, body } = await ask(await serve(), path, { cookie: '', ...headers });

    expect({ status, body }).toEqual({
      status: 401,
      body: 'Open the link that kbctl printed: it has the key of this page.\n',
    });
  });

  test('can be set, and sent as a bearer token by a scraper', async () => {
    const key = 'k'.repeat(16);
    const server = await serve({ key });

    expect(await ask(server, '/metrics', { cookie: '', authorization: `Bearer ${key}` })).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8' },
      body: expect.stringContaining('kube_bootstrap_controller_cluster_health{cluster="lab-2",health="good"}'),
    });
  });
});

test('HEAD has no body', async () => {
  expect(await ask(await serve(), '/', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
});

test.each(['example.com', '127.0.0.1', '127.0.0.1.example.com', 'localhost:1'])(
  'the host name %s is not this machine and learns nothing',
  async (host) => {
    const answer = await ask(await serve(), '/', { host });

    expect(answer.status).toBe(421);
    expect(answer.body).not.toContain('prod-eu-1');
  },
);

test('localhost is this machine', async () => {
  const server = await serve();

  expect(await ask(server, '/', { host: `localhost:${new URL(server.url).port}` })).toMatchObject({ status: 200 });
});

test.each(['https://evil.example', 'null'])('a page of the origin %s learns nothing', async (origin) => {
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

test('a table that cannot be read shows the last page with the error, until it can', async () => {
  const answers = [async () => FLEET, () => Promise.reject(new Error('no <answer>'))];
  const server = await serve({ readFleet: () => (answers.shift() ?? (async () => FLEET))(), freshMs: 0 });

  await ask(server, '/');
  const { status, body } = await ask(server, '/');

  expect(status).toBe(200);
  expect(body).toContain('2 of 6 clusters need');
  expect(body).toMatch(/since <time[^>]*>[^<]+<\/time>; the page shows the last result: no &lt;answer&gt;/);
  expect((await ask(server, '/')).body).not.toContain('The table cannot be read');
});

test.each(['/', '/clusters/lab-2'])('a table that cannot be read from the start is an error at %s', async (path) => {
  const fails = () => Promise.reject(new Error('no answer'));
  const { status, body } = await ask(await serve({ readFleet: fails, readCluster: fails }), path);

  expect(status).toBe(503);
  expect(body).toContain('no answer');
  expect(body).toContain(' data-live="2000"');
});

test('a port in use is an error with its resolution', async () => {
  const server = await serve();
  const port = Number(new URL(server.url).port);

  await expect(serve({ port })).rejects.toThrow(
    /^The page cannot be served at port \d+ \(EADDRINUSE\): choose another, or 0 for a free one\.$/,
  );
});

test('closing aborts a read', async () => {
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

test.each([
  { many: 50, what: 'with their ranges', prefixes: ['ranges/', 'runs/'] },
  { many: 51, what: 'without them', prefixes: ['runs/'] },
])('a live page reads $many clusters once each, $what', async ({ many, prefixes }) => {
  const table = aTable();
  for (let n = 0; n < many; n++) await registerCluster(table, aClusterSpec({ name: `c-${n}` }));
  const lists: string[] = [];
  const counted: KeyValueTable = {
    ...table,
    list: (cluster, prefix) => {
      if (cluster === 'c-7') lists.push(prefix);
      return table.list(cluster, prefix);
    },
  };
  const { readFleet } = readsOf(
    () => counted,
    't',
    () => 0,
  );
  expect((await readFleet(new AbortController().signal)).clusters).toHaveLength(many);
  expect(lists.sort()).toEqual(prefixes);
});
