import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type PageServer, servePage } from '../../cli/page/serve-page.ts';
import type { ClusterStatus } from '../../cli/status/cluster-status.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  aSlash24,
  manyClusters,
  STATUS_AT_MS,
} from '../support/a-fleet-status.ts';
import { eventually } from '../support/eventually.ts';
import { type PageViewer, startViewer } from '../support/status-page.ts';

const KEY = 'a-key-that-stays';

let viewer: PageViewer;
let server: PageServer;
/** What the table has, and how often it was read. */
let clusters: readonly ClusterStatus[];
let failure: Error | undefined;
let reads: number;

const readCluster = async (name: string) => clusters.find((cluster) => cluster.name === name);

beforeAll(async () => {
  viewer = await startViewer();
});
beforeEach(async () => {
  clusters = [aClusterStatus({ name: 'prod-eu-1' }), aClusterStatus({ name: 'prod-eu-2' })];
  failure = undefined;
  reads = 0;
  server = await servePage({
    readFleet: async () => {
      reads++;
      if (failure !== undefined) throw failure;
      return aFleetStatus(clusters, { atMs: STATUS_AT_MS + 1_000 * reads });
    },
    readCluster,
    key: KEY,
    freshMs: 0,
    pollMs: 30,
  });
});
afterEach(async () => {
  await viewer.closePages();
  await server.close();
});
afterAll(() => viewer?.close());

/** Until the page has asked again twice: what was read before is shown. */
async function twoReads(): Promise<void> {
  const before = reads;
  await eventually(() => expect(reads).toBeGreaterThanOrEqual(before + 2));
}

test('changes in the table appear without a reload', async () => {
  const { page, ...wrong } = await viewer.open(server.url);
  await page.evaluate(() => Object.assign(globalThis, { here: true }));
  expect(await page.locator('#summary').textContent()).toBe('2 of 2 clusters are good.');

  clusters = [
    aClusterStatus({
      name: 'prod-eu-1',
      health: 'bad',
      attention: [{ level: 'bad', word: 'duplicate', message: '10.0.0.37 is taken twice.', next: 'Delete one.' }],
      findings: [aFinding()],
      ranges: [aSlash24(0.4, { 37: 'D' })],
    }),
    aClusterStatus({ name: 'prod-eu-2' }),
    aClusterStatus({ name: 'prod-eu-3' }),
  ];

  await page.getByRole('article').getByText('10.0.0.37 is taken twice.').waitFor();
  expect(await page.locator('.glance tbody tr').count()).toBe(3);
  expect(await page.locator('.glance tbody tr').first().textContent()).toMatch(/^prod-eu-1critical13\/3/);
  expect(await page.title()).toBe('1 needs attention – kube-bootstrap-controller-prod');
  expect(await page.locator('#news').textContent()).toBe('1 of 3 clusters needs attention, 2 are good.');
  expect(await page.evaluate(() => 'here' in globalThis)).toBe(true);
  expect({ ...wrong, close: undefined }).toEqual({ consoleErrors: [], pageErrors: [], strayRequests: [] });
});

test('an update keeps open, focused, filtered and scrolled parts', async () => {
  clusters = manyClusters(60);
  const { page } = await viewer.open(server.url, { reducedMotion: 'reduce' });
  await page.locator('#filter-name').fill('cluster-000');
  const details = page.locator('#c-cluster-0001');
  await details.locator('summary').click();
  await details.getByRole('img').first().focus();
  await page.keyboard.press('ArrowRight');
  const scrolled = await page.evaluate<number>('scrollY');

  clusters = manyClusters(60).map((cluster) => ({ ...cluster, apiServers: [anApiServer('192.0.2.99')] }));
  await details.getByText('192.0.2.99').waitFor();
  await twoReads();

  expect(await details.getAttribute('open')).toBe('');
  expect(await page.evaluate("document.activeElement?.getAttribute('role')")).toBe('img');
  expect(await details.locator('.cell').first().textContent()).toMatch(/^10\.0\.0\.1: /);
  expect(await page.locator('#filter-name').inputValue()).toBe('cluster-000');
  expect(await page.locator('.glance tbody tr:visible').count()).toBe(10);
  expect(scrolled).toBeGreaterThan(100);
  expect(Math.abs((await page.evaluate<number>('scrollY')) - scrolled)).toBeLessThan(200);
});

test('rows are added, removed and moved', async () => {
  clusters = manyClusters(12);
  const { page } = await viewer.open(server.url);
  const names = () => page.locator('.glance tbody th').allTextContents();
  const orders = [[3, 1, 2], [5, 4, 3, 2, 1, 0], [], [0, 11, 6, 7], [7, 6, 1]];

  for (const order of orders) {
    clusters = order.flatMap((index) => manyClusters(12)[index] ?? []);
    const wanted = clusters.map(({ name }) => name);
    await eventually(async () => expect(await names()).toEqual(wanted));
    expect(await page.locator('details h3').allTextContents()).toEqual(wanted);
  }
});

test('a read error appears above the last result', async () => {
  const { page } = await viewer.open(server.url);

  failure = new Error('the table does not answer');
  const banner = page.getByRole('alert');
  await banner.waitFor();

  expect(await banner.textContent()).toMatch(
    /^The table cannot be read since .*Z; the page shows the last result: the table does not answer$/,
  );
  expect(await page.locator('.glance tbody tr').count()).toBe(2);
  failure = undefined;
  await banner.waitFor({ state: 'detached' });
});

test('a page shows that its server stopped, and resumes when it is back', async () => {
  const { page } = await viewer.open(server.url);
  const port = Number(new URL(server.url).port);
  const live = page.locator('#live');
  expect(await live.textContent()).toBe('Live');

  await server.close();
  await eventually(async () => {
    expect(await live.textContent()).toMatch(/^Not updated since \d\d:\d\d:\d\d UTC: the server .* does not answer$/);
  });
  expect(await page.locator('.glance tbody tr').count()).toBe(2);

  server = await servePage({
    readFleet: async () => aFleetStatus([aClusterStatus({ name: 'back' })]),
    readCluster,
    key: KEY,
    port,
    pollMs: 30,
  });
  await page.locator('.glance').getByText('back').waitFor();
  expect(await live.textContent()).toBe('Live');
});

test('a hidden page sends no requests until it is visible again', async () => {
  const asked = { one: 0, other: 0 };
  const own = await servePage({
    readFleet: async () => aFleetStatus(clusters),
    readCluster: async (name) => {
      asked[name === 'one' ? 'one' : 'other']++;
      return aClusterStatus({ name });
    },
    freshMs: 0,
    pollMs: 30,
  });
  const hide = (hidden: boolean) =>
    `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`;
  const { page } = await viewer.open(`${own.url}clusters/one`);
  await viewer.open(`${own.url}clusters/other`);

  await page.evaluate(hide(true));
  const { one, other } = asked;
  await eventually(() => expect(asked.other).toBeGreaterThan(other + 5));
  // One may have been under way.
  expect(asked.one).toBeLessThanOrEqual(one + 1);

  await page.evaluate(hide(false));
  await eventually(() => expect(asked.one).toBeGreaterThan(one + 3));
  await viewer.closePages();
  await own.close();
});

test('the page of one cluster is live, and links back', async () => {
  clusters = manyClusters(500, 0);
  const { page } = await viewer.open(server.url);

  await page.getByRole('link', { name: 'cluster-0499' }).click();
  await page.getByRole('heading', { level: 1, name: 'cluster-0499' }).waitFor();
  clusters = clusters.map((cluster) => ({ ...cluster, apiServers: [anApiServer('192.0.2.99')] }));
  await page.getByText('192.0.2.99').waitFor();
  await page.reload();
  await page.getByText('192.0.2.99').waitFor();
  await page.getByRole('link', { name: 'All clusters' }).click();

  await page.getByRole('heading', { level: 1, name: 'Clusters' }).waitFor();
});
