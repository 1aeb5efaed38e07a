import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type PageServer, servePage } from '../../cli/page/serve-page.ts';
import type { ClusterStatus } from '../../cli/status/cluster-status.ts';
import { aClusterStatus, aFleetStatus, anApiServer, fleetOf, NOW_MS } from '../support/a-fleet-status.ts';
import { eventually } from '../support/eventually.ts';
import { running } from '../support/running.ts';
import { startBrowser } from './browser.ts';

const KEY = 'a-key-that-stays';

const browser = running(startBrowser);
let server: PageServer;
/** The content of the table, and the number of its reads. */
let clusters: readonly ClusterStatus[];
let failure: Error | undefined;
let reads: number;

const read = async (_: AbortSignal, name?: string) => {
  reads++;
  if (failure !== undefined) throw failure;
  const shown = clusters.filter((cluster) => name === undefined || cluster.name === name);
  return aFleetStatus(shown, { atMs: NOW_MS + 1_000 * reads });
};
// The clock of the server runs fast, so that each request reads again.
const nowMs = () => Date.now() * 1_000;
const serve = (port = 0, pollMs = 30) => servePage({ read, key: KEY, nowMs, pollMs, port });

beforeEach(async () => {
  clusters = [aClusterStatus({ name: 'prod-eu-1' }), aClusterStatus({ name: 'prod-eu-2' })];
  failure = undefined;
  reads = 0;
  server = await serve();
});
afterEach(async () => {
  await browser.closePages();
  await server.close();
});

/** Waits until the page has sent two more requests. The page then shows the answer to the first of them. */
async function twoReads(): Promise<void> {
  const before = reads;
  await eventually(() => expect(reads).toBeGreaterThanOrEqual(before + 2));
}

test('changes in the table appear without a reload', async () => {
  const { page, problems } = await browser.open(server.url);
  await page.evaluate(() => Object.assign(globalThis, { here: true }));
  expect(await page.locator('#summary').textContent()).toBe('2 clusters: 2 good.');

  const attention = [
    { level: 'unhealthy', word: 'duplicate', message: '10.0.0.37 is taken twice.', next: 'Delete one.' },
  ] as const;
  clusters = [...clusters, aClusterStatus({ name: 'prod-eu-3', health: 'unhealthy', attention })];

  await page.getByRole('group').getByText('10.0.0.37 is taken twice.').waitFor();
  expect(await page.locator('tbody tr').count()).toBe(3);
  expect(await page.title()).toBe('1 of 3 need attention – kube-bootstrap-controller-prod');
  expect(await page.locator('#news').textContent()).toBe('3 clusters: 1 unhealthy, 2 good.');
  expect(await page.evaluate(() => 'here' in globalThis)).toBe(true);
  expect(problems).toEqual([]);
});

test('an update keeps the focus, the scroll positions of the page and of its tables, the filter and unfolded problems', async () => {
  clusters = fleetOf(60, 30);
  const { page } = await browser.open(server.url, { viewport: { width: 360, height: 740 } });
  await page.getByRole('link', { name: 'tenant-50-eu-central-1' }).focus();
  const scrolled = await page.evaluate<number>('document.querySelector(".scroll").scrollLeft = 50, scrollY');

  clusters = clusters.map((cluster) => ({ ...cluster, mode: 'observe' }));
  await page.getByText('observe').first().waitFor();
  await twoReads();

  expect(await page.evaluate('document.activeElement.textContent')).toBe('tenant-50-eu-central-1');
  expect(await page.evaluate('document.querySelector(".scroll").scrollLeft')).toBe(50);
  expect(scrolled).toBeGreaterThan(100);
  expect(Math.abs((await page.evaluate<number>('scrollY')) - scrolled)).toBeLessThan(200);

  await page.getByLabel('Filter').fill('tenant-1-');
  await page.locator('summary:visible').click();
  clusters = clusters.map((cluster) => ({ ...cluster, mode: 'enforce' }));
  await page.getByText('enforce').filter({ visible: true }).waitFor();
  expect(await page.locator('tbody tr:visible').count()).toBe(1);
  expect(await page.locator('details[open]').count()).toBe(1);
});

test('an update waits while text is selected', async () => {
  const { page } = await browser.open(server.url);
  await page.evaluate('getSelection().selectAllChildren(document.querySelector("#summary"))');
  await twoReads();
  clusters = [];
  await twoReads();
  expect(await page.locator('#live').textContent()).toMatch(/^Paused while text is selected/);
  expect(await page.locator('tbody tr').count()).toBe(2);

  await page.evaluate('getSelection().removeAllRanges()');
  await page.getByText('No cluster is registered.').first().waitFor();
});

test('a page reports that its table cannot be read or that its server has stopped, and resumes its updates when both work again', async () => {
  const { page } = await browser.open(server.url);
  const live = page.locator('#live');

  failure = new Error('the table does not answer');
  await live.getByText(/^Not updated since .* UTC: The table cannot be read: the table does not answer/).waitFor();
  expect(await page.locator('tbody tr').count()).toBe(2);

  failure = undefined;
  const { port } = new URL(server.url);
  await server.close();
  await live.getByText(/: the server of this page does not answer$/).waitFor();
  expect(await page.locator('tbody tr').count()).toBe(2);

  clusters = [aClusterStatus({ name: 'back' })];
  server = await serve(Number(port));
  await page.getByRole('link', { name: 'back' }).waitFor();
  expect(await live.textContent()).toBe('Live');
});

test('a hidden page sends no requests until it is visible again', async () => {
  const hide = (hidden: boolean) =>
    `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`;
  const { page } = await browser.open(server.url);
  const { page: other } = await browser.open(server.url);
  await other.evaluate(hide(true));
  await page.evaluate(hide(true));
  await page.waitForLoadState('networkidle');
  const before = reads;
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 100))');
  expect(reads).toBeLessThanOrEqual(before + 2);

  await page.evaluate(hide(false));
  await twoReads();
});

test('the page of one cluster refreshes itself, and links to the page of all clusters', async () => {
  clusters = fleetOf(30, 0);
  await server.close();
  server = await serve(0, 2_000);
  const { page } = await browser.open(server.url);

  await page.getByRole('link', { name: 'tenant-29-eu-central-1' }).click();
  await page.getByRole('heading', { level: 1, name: 'tenant-29-eu-central-1' }).waitFor();
  clusters = clusters.map((cluster) => ({ ...cluster, apiServers: [anApiServer('192.0.2.99')] }));
  await page.getByText('192.0.2.99').waitFor();
  await page.getByRole('link', { name: 'All clusters' }).click();

  await page.getByRole('heading', { level: 1, name: 'Clusters' }).waitFor();
});
