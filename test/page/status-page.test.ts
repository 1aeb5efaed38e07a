import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { BrowserContextOptions } from 'playwright-core';
import { renderClusterPage, renderFleetPage } from '../../cli/page/render-pages.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  clustersOfEachKind,
  fleetOf,
  NOW_MS,
} from '../support/a-fleet-status.ts';
import { checkAccessibility, screenshot, sidewaysScroll, startBrowser, type TestBrowser } from './browser.ts';

jest.setTimeout(120_000);

let browser: TestBrowser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterEach(async () => {
  expect(await browser.closePages()).toEqual([]);
});
afterAll(() => browser?.close());

const SCREENS: Readonly<Record<string, BrowserContextOptions>> = Object.fromEntries(
  (['light', 'dark'] as const).flatMap((colorScheme) =>
    [390, 1280, 1920].map((width) => [`${width}-${colorScheme}`, { colorScheme, viewport: { width, height: 900 } }]),
  ),
);

const PAGES: Readonly<Record<string, () => string>> = {
  fleet: () => renderFleetPage(aFleetStatus(clustersOfEachKind())),
  cluster: () =>
    renderClusterPage(clustersOfEachKind()[1] ?? aClusterStatus(), { atMs: NOW_MS, live: { pollMs: 600_000 } }),
  quiet: () => renderFleetPage(aFleetStatus([aClusterStatus()])),
  fleet20: () => renderFleetPage(aFleetStatus(fleetOf(20, 3)), { live: { pollMs: 600_000 } }),
  fleet60: () => renderFleetPage(aFleetStatus(fleetOf(60, 30)), { live: { pollMs: 600_000 } }),
  empty: () => renderFleetPage(aFleetStatus([])),
};

describe('the accessibility of the status page', () => {
  test.each(Object.keys(PAGES).flatMap((page) => Object.keys(SCREENS).map((screen) => [page, screen] as const)))(
    'axe-core finds no fault in the page of the kind %s on a screen that is %s',
    async (kind, screen) => {
      const { page } = await browser.view(PAGES[kind]?.() ?? '', SCREENS[screen]);
      expect(await checkAccessibility(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
      await screenshot(page, `${kind}-${screen}`);
    },
  );
});

test('heading levels have no gaps, and landmarks exist', async () => {
  const { page } = await browser.view(PAGES['fleet']?.() ?? '');
  const levels = await page.locator('h1,h2,h3').evaluateAll((all) => all.map(({ tagName }) => Number(tagName[1])));

  expect(levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)).toEqual([]);
  for (const role of ['banner', 'main', 'contentinfo'] as const) {
    expect(await page.getByRole(role).count()).toBe(1);
  }
});

describe('a hostile name does not run a script in the status page', () => {
  const TEXTS = [
    '<script>globalThis.hacked = true</script>',
    '"><img src="https://example.com/x.png" onerror="globalThis.hacked = true">',
    "'-globalThis.hacked-'",
    '</style></title></textarea><svg onload="globalThis.hacked=true">',
    'evil\u202egnp.exe\u2066',
    '\0\u0007\u001b[31m',
    '{{constructor.constructor("hacked=1")()}}',
    'w'.repeat(5_000),
    '\ud800\ufffd',
  ];
  const hostile = (text: string) =>
    aClusterStatus({
      name: text.slice(0, 100),
      health: 'unhealthy',
      attention: [{ level: 'unhealthy', word: text, message: text, next: text }],
      apiServers: [anApiServer(text, { host: text, lastProbe: text })],
      findings: [aFinding({ service: text, message: text, item: text, resolution: text })],
      unreadable: [text],
    });

  test.each(TEXTS.map((text) => [JSON.stringify(text.slice(0, 40)), text] as const))(
    'the hostile name %s is shown as text, and breaks nothing',
    async (_, text) => {
      const fleet = aFleetStatus([hostile(text)], { table: text, unreadable: [{ name: text, message: text }] });
      const { page } = await browser.view(renderFleetPage(fleet, { live: { pollMs: 600_000 } }), SCREENS['390-light']);

      expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
      expect(await page.locator('script').count()).toBe(1);
      expect(await page.locator('img, iframe, object, form, [onload], [onerror], [style]').count()).toBe(0);
      expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
      expect(await checkAccessibility(page)).toEqual([]);
    },
  );

  test('a name is shown in full, with invisible characters escaped', async () => {
    const { page } = await browser.view(renderFleetPage(aFleetStatus([hostile('a<b>\u202ec')])));

    expect(await page.locator('summary b').textContent()).toBe('a<b>\\u{202e}c');
  });
});

test('a page of 1,000 clusters is not wider than the window, and each unhealthy cluster is one line whose problems are folded', async () => {
  const { page } = await browser.view(renderFleetPage(aFleetStatus(fleetOf(1_000, 60))), SCREENS['390-light']);
  expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
  expect(await page.locator('*').count()).toBeLessThan(25_000);
  expect(await page.locator('details').count()).toBe(40);
  expect(await page.locator('.attention:visible').count()).toBe(0);

  const folded = page.locator('details', { hasText: 'tenant-1-eu' }).first();
  await folded.locator('summary').click();
  await folded.getByText('recreate the newer one').waitFor();
  await page.getByRole('link', { name: 'All clusters' }).click();
  expect(await page.evaluate('document.querySelector("#all").getBoundingClientRect().top')).toBeLessThan(50);
});

test('the filter of the page shows only the clusters with a text or a health, by severity or by name', async () => {
  const { page } = await browser.view(renderFleetPage(aFleetStatus(fleetOf(60, 30))));
  const names = () => page.locator('tbody th:visible').allTextContents();
  expect((await names()).slice(0, 3)).toEqual([
    expect.stringMatching(/^a-tenant/),
    'tenant-1-eu-central-1',
    'tenant-2-eu-central-1',
  ]);

  await page.getByLabel('Filter').fill('NOLIVE tenant-11');
  expect(await names()).toEqual(['tenant-11-eu-central-1']);
  expect(await page.locator('details:visible').count()).toBe(1);
  expect(await page.locator('output').textContent()).toBe('1 of 60');

  await page.getByLabel('Filter').fill('');
  await page.getByLabel('Health').selectOption('warning');
  expect(await names()).toHaveLength(10);
  await page.getByLabel('Health').selectOption('all');
  await page.getByLabel('Order').selectOption('name');
  expect((await names()).slice(-1)).toEqual(['tenant-59-eu-central-1']);
});
