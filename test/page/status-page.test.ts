import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { BrowserContextOptions } from 'playwright-core';
import { renderClusterPage, renderFleetPage } from '../../cli/page/render-pages.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  clustersOfEachKind,
  manyClusters,
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

const SCREENS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
  'narrow and dark': { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
};

const PAGES: Readonly<Record<string, () => string>> = {
  fleet: () => renderFleetPage(aFleetStatus(clustersOfEachKind())),
  cluster: () =>
    renderClusterPage(clustersOfEachKind()[1] ?? aClusterStatus(), { atMs: NOW_MS, live: { pollMs: 60_000 } }),
  quiet: () => renderFleetPage(aFleetStatus([aClusterStatus()])),
  empty: () => renderFleetPage(aFleetStatus([])),
};

describe('the accessibility of the status page', () => {
  test.each(Object.keys(PAGES).flatMap((page) => Object.keys(SCREENS).map((screen) => [page, screen] as const)))(
    'axe-core finds no fault in the page of the kind %s on a screen that is %s',
    async (kind, screen) => {
      const { page } = await browser.view(PAGES[kind]?.() ?? '', SCREENS[screen]);
      expect(await checkAccessibility(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
      await screenshot(page, `${kind}-${screen.replaceAll(' ', '-')}`);
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
      const { page } = await browser.view(renderFleetPage(fleet, { live: { pollMs: 60_000 } }), SCREENS['narrow']);

      expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
      expect(await page.locator('script').count()).toBe(1);
      expect(await page.locator('img, iframe, object, form, [onload], [onerror], [style]').count()).toBe(0);
      expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
      expect(await checkAccessibility(page)).toEqual([]);
    },
  );

  test('a name is shown in full, with invisible characters escaped', async () => {
    const { page } = await browser.view(renderFleetPage(aFleetStatus([hostile('a<b>\u202ec')])));

    expect(await page.getByRole('article').getByRole('heading').textContent()).toBe('a<b>\\u{202e}c');
  });
});

test('a page of 1,000 clusters is not wider than the window, and is accessible', async () => {
  const { page } = await browser.view(renderFleetPage(aFleetStatus(manyClusters(1_000))), SCREENS['narrow']);
  expect(await sidewaysScroll(page)).toBeLessThanOrEqual(0);
  expect(await page.locator('*').count()).toBeLessThan(25_000);

  // Only a tenth of the clusters are checked: all rows are alike, and a check of all takes long.
  const { page: tenth } = await browser.view(renderFleetPage(aFleetStatus(manyClusters(100))), SCREENS['narrow']);
  expect(await checkAccessibility(tenth)).toEqual([]);
});
