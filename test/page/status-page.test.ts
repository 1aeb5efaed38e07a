import { afterEach, expect, jest, test } from '@jest/globals';
import type { BrowserContextOptions } from 'playwright-core';
import { renderClusterPage, renderFleetPage } from '../../cli/page/render-pages.ts';
import {
  aClusterStatus,
  aFleetStatus,
  aStatusOf,
  clustersOfEachKind,
  fleetOf,
  NOW_MS,
} from '../support/a-fleet-status.ts';
import { running } from '../support/running.ts';
import { checkAccessibility, screenshot, sidewaysScroll, startBrowser } from './browser.ts';

jest.setTimeout(120_000);

const browser = running(startBrowser);
afterEach(async () => {
  expect(await browser.closePages()).toEqual([]);
});

const NARROW: BrowserContextOptions = { colorScheme: 'light', viewport: { width: 390, height: 900 } };
const WIDE: BrowserContextOptions = { colorScheme: 'dark', viewport: { width: 1280, height: 900 } };
const live = { pollMs: 600_000 };

const PAGES: Readonly<Record<string, () => string>> = {
  fleet: () => renderFleetPage(aFleetStatus(clustersOfEachKind())),
  cluster: () => renderClusterPage(clustersOfEachKind()[1] ?? aClusterStatus(), { atMs: NOW_MS, live }),
  folded: () => renderFleetPage(aFleetStatus(fleetOf(12, 6)), { live }),
  empty: () => renderFleetPage(aFleetStatus([])),
};

test.each(
  Object.keys(PAGES).flatMap((kind) => [
    { kind, screen: NARROW },
    { kind, screen: WIDE },
  ]),
)('axe-core finds no fault in the page of the kind $kind, in $screen.colorScheme colours', async ({ kind, screen }) => {
  const { page } = await browser.view(PAGES[kind]?.() ?? '', screen);
  expect(await checkAccessibility(page)).toEqual([]);
  expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
  await screenshot(page, `${kind}-${screen.colorScheme}`);
});

test('heading levels have no gaps, and landmarks exist', async () => {
  const { page } = await browser.view(PAGES['fleet']?.() ?? '');
  const levels = await page.locator('h1,h2,h3').evaluateAll((all) => all.map(({ tagName }) => Number(tagName[1])));

  expect(levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)).toEqual([]);
  for (const role of ['banner', 'main', 'contentinfo'] as const) {
    expect(await page.getByRole(role).count()).toBe(1);
  }
});

test('a hostile name does not run a script in the status page', async () => {
  const texts = [
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
  const unreadable = texts.map((text) => ({ name: text, message: text }));
  const fleet = aFleetStatus(texts.map(aStatusOf), { table: texts.join(' '), unreadable });
  const { page } = await browser.view(renderFleetPage(fleet, { live }), NARROW);

  expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
  expect(await page.locator('script').count()).toBe(1);
  expect(await page.locator('form').count()).toBe(1);
  expect(await page.locator('img, iframe, object, [onload], [onerror], [style]').count()).toBe(0);
  expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
  expect(await page.locator('summary b').allTextContents()).toContain('evil\\u{202e}gnp.exe\\u{2066}');
});

test('a page of 1,000 clusters is not wider than the window, and each unhealthy cluster is one line whose problems are folded', async () => {
  const { page } = await browser.view(renderFleetPage(aFleetStatus(fleetOf(1_000, 60))), NARROW);
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

test('the page can show only the clusters with a given text or health, and sort them by severity or by name', async () => {
  const { page } = await browser.view(renderFleetPage(aFleetStatus(fleetOf(60, 30))));
  const names = () => page.locator('tbody th:visible').allTextContents();
  expect((await names()).slice(1, 3)).toEqual(['tenant-1-eu-central-1', 'tenant-2-eu-central-1']);

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
