import { afterEach, describe, expect, test } from '@jest/globals';
import { type PageServer, type PageServerOptions, servePage } from '../../../cli/page/serve-page.ts';
import type { FleetStatus } from '../../../lib/status/cluster-status.ts';
import { aClusterStatus, aFleetStatus, clustersOfEachKind } from '../../support/a-fleet-status.ts';
import { askLocal } from '../../support/ask-local.ts';

const FLEET = aFleetStatus(clustersOfEachKind());
const open: PageServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(options: Partial<PageServerOptions> = {}): Promise<PageServer> {
  const server = await servePage({ readFleet: async () => FLEET, ...options });
  open.push(server);
  return server;
}

const ask = ({ url }: PageServer, path: string, { method = 'GET', host = new URL(url).host } = {}) =>
  askLocal(`${url.slice(0, -1)}${path}`, { method, headers: { host, authorization: undefined } });

test('all clusters are at /, and each at its own path', async () => {
  const server = await serve();

  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  expect(await ask(server, '/')).toMatchObject({ status: 200, body: expect.stringContaining('2 of 6 clusters need') });
  expect(await ask(server, '/clusters/lab-2?x=1')).toMatchObject({
    status: 200,
    body: expect.stringContaining('<h1><bdi>lab-2</bdi></h1>'),
  });
});

test('a cluster is read alone where that can be done', async () => {
  const asked: string[] = [];
  const server = await serve({
    readCluster: async (name) => {
      asked.push(name);
      return aClusterStatus({ name });
    },
  });

  expect(await ask(server, '/clusters/prod-eu-1')).toMatchObject({ status: 200 });
  expect(asked).toEqual(['prod-eu-1']);
});

test('an unknown cluster is answered with the nearest name', async () => {
  const server = await serve();

  expect(await ask(server, '/clusters/prod-eu-3')).toMatchObject({
    status: 404,
    body: expect.stringContaining('The table has no cluster of this name. Is it prod-eu-1 that you mean?'),
  });
});

test.each(['/clusters/', '/clusters/a/b', '/favicon.ico', '/%ff', '//', '/../etc/passwd', '/healthz'])(
  'nothing is at %s',
  async (path) => {
    expect(await ask(await serve(), path)).toMatchObject({ status: 404 });
  },
);

test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s changes nothing', async (method) => {
  let reads = 0;
  const server = await serve({
    readFleet: async () => {
      reads++;
      return FLEET;
    },
  });

  expect(await ask(server, '/', { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  expect(reads).toBe(0);
});

test('HEAD has no body', async () => {
  expect(await ask(await serve(), '/', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
});

describe('a host name that is not this machine', () => {
  test.each(['example.com', '127.0.0.1', '127.0.0.1.example.com', 'localhost:1'])('%s learns nothing', async (host) => {
    const answer = await ask(await serve(), '/', { host });

    expect(answer.status).toBe(421);
    expect(answer.body).not.toContain('prod-eu-1');
  });

  test('localhost is this machine', async () => {
    const server = await serve();

    expect(await ask(server, '/', { host: `localhost:${new URL(server.url).port}` })).toMatchObject({ status: 200 });
  });
});

test.each(['https://evil.example', 'null'])('a page of the origin %s learns nothing', async (origin) => {
  const { url } = await serve();

  const answer = await askLocal(url, { headers: { origin } });
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

test('all who look at a time share one read', async () => {
  const waiting = Promise.withResolvers<FleetStatus>();
  let reads = 0;
  const server = await serve({
    readFleet: () => {
      reads++;
      return waiting.promise;
    },
  });
  const asked = ['/', '/', '/clusters/lab-2'].map((path) => ask(server, path));

  waiting.resolve(FLEET);

  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(reads).toBe(1);
});

describe('a table that cannot be read', () => {
  test('leaves the last page, and says so', async () => {
    const answers = [async () => FLEET, () => Promise.reject(new Error('no <answer>'))];
    const server = await serve({ readFleet: () => (answers.shift() ?? (async () => FLEET))(), freshMs: 0 });

    await ask(server, '/');
    const { status, body } = await ask(server, '/');

    expect(status).toBe(200);
    expect(body).toContain('2 of 6 clusters need');
    expect(body).toMatch(
      /The table cannot be read<\/b> since <time[^>]*>.{12}<\/time>; what is shown is from before: no &lt;answer&gt;/,
    );
    expect((await ask(server, '/')).body).not.toContain('The table cannot be read');
  });

  test('from the beginning is an error that resolves automatically', async () => {
    const server = await serve({ readFleet: () => Promise.reject(new Error('no answer')) });

    for (const path of ['/', '/clusters/lab-2']) {
      const { status, body } = await ask(server, path);
      expect(status).toBe(503);
      expect(body).toContain('no answer');
      expect(body).toContain(' data-live="2000"');
    }
  });
});

test('a port that is taken is said, with what to do', async () => {
  const server = await serve();
  const port = Number(new URL(server.url).port);

  await expect(serve({ port })).rejects.toThrow(
    /^The page cannot be served at port \d+ \(EADDRINUSE\): choose another, or 0 for a free one\.$/,
  );
});

test('closing ends a read that nobody waits for', async () => {
  const signals: AbortSignal[] = [];
  const begun = Promise.withResolvers<void>();
  const server = await servePage({
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
