import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { renderClusterPage } from '../../cli/page/render-pages.ts';
import type { RangeStatus } from '../../cli/status/cluster-status.ts';
import { aClusterStatus, anIPv6Range, aSlash16, aSlash24, nodePorts, STATUS_AT_MS } from '../support/a-fleet-status.ts';
import { type PageViewer, startViewer } from '../support/status-page.ts';

let viewer: PageViewer;
beforeAll(async () => {
  viewer = await startViewer();
});
afterEach(async () => {
  expect(await viewer.closePages()).toEqual([]);
});
afterAll(() => viewer?.close());

async function showing(range: RangeStatus): Promise<{ page: Page; map: Locator; told: Locator }> {
  const { page } = await viewer.view(renderClusterPage(aClusterStatus({ ranges: [range] }), { atMs: STATUS_AT_MS }));
  return { page, map: page.getByRole('img'), told: page.locator('.cell') };
}

/** Moves the pointer into the middle of a cell. */
async function point(map: Locator, cell: number): Promise<void> {
  const box = await map.boundingBox();
  const [, , columns = 1, rows = 1] = ((await map.getAttribute('viewBox')) ?? '').split(' ').map(Number);
  if (box === null) throw new Error('the map is not shown');
  const position = {
    x: (((cell % columns) + 0.5) * box.width) / columns,
    y: ((Math.floor(cell / columns) + 0.5) * box.height) / rows,
  };
  await map.hover({ position });
}

/** Cells of each word that the map draws. */
function drawn(map: Locator): Promise<Record<string, number>> {
  return map.locator('path').evaluateAll((paths) =>
    Object.fromEntries(
      paths.map((path) => {
        const runs = [...(path.getAttribute('d') ?? '').matchAll(/h(\d+)/g)];
        return [path.getAttribute('data-s') ?? '', runs.reduce((sum, [, length]) => sum + Number(length), 0)];
      }),
    ),
  );
}

describe('a /24', () => {
  const range = aSlash24(0, { 1: 'U', 37: 'D', 90: 'L', 200: 'H' });

  test('a /24 is drawn address by address', async () => {
    const { map, page } = await showing(range);

    expect(await drawn(map)).toEqual({
      'not usable': 2,
      'in use': 1,
      'free, reserved band': 15,
      duplicate: 1,
      leaking: 1,
      held: 1,
      free: 235,
    });
    expect(await page.locator('.legend').textContent()).toMatch(/^duplicate 1leaking 1held 1in use 1/);
  });

  test.each([
    [0, '10.0.0.0: not usable'],
    [1, '10.0.0.1: in use'],
    [37, '10.0.0.37: duplicate'],
    [90, '10.0.0.90: leaking'],
    [200, '10.0.0.200: held'],
    [254, '10.0.0.254: free'],
  ])('a /24 shows cell %d under the pointer', async (cell, words) => {
    const { map, told } = await showing(range);

    await point(map, cell);

    expect(await told.textContent()).toBe(words);
  });

  test('a /24 shows cells by keyboard, row by row', async () => {
    const { page, map, told } = await showing(range);
    const seen = [];
    await map.press('Home');
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp', 'ArrowUp', 'End', 'ArrowRight']) {
      await page.keyboard.press(key);
      seen.push(await told.textContent());
    }

    expect(seen).toEqual([
      '10.0.0.1: in use',
      '10.0.0.33: free',
      '10.0.0.32: free',
      '10.0.0.0: not usable',
      '10.0.0.0: not usable',
      '10.0.0.255: not usable',
      '10.0.0.255: not usable',
    ]);
    expect(await told.getAttribute('aria-live')).toBe('polite');
  });
});

test('a /16 is drawn in buckets that fill up', async () => {
  const { map, told, page } = await showing(aSlash16(0, { 8192: 'U', 8193: 'U', 20000: 'D' }));

  expect(await drawn(map)).toEqual({ 'free, reserved band': 17, free: 4_077, 'up to ¼ in use': 1, duplicate: 1 });
  await point(map, 512);
  expect(await told.textContent()).toBe('10.96.32.0 to 10.96.32.15: up to ¼ in use');
  await point(map, 1_250);
  expect(await told.textContent()).toBe('10.96.78.32 to 10.96.78.47: duplicate');
  expect(await page.locator('.legend').textContent()).toContain('a cell is 16 addresses');
});

test('an IPv6 range shows its addresses', async () => {
  const { map, told } = await showing(anIPv6Range(0));

  await point(map, 256);
  expect(await told.textContent()).toBe('fd00:10:96::1000 to fd00:10:96::100f: leaking');
  await point(map, 4_095);
  expect(await told.textContent()).toBe('fd00:10:96::fff0 to fd00:10:96::ffff: free');
});

test('the port range is drawn port by port, a hundred in a row', async () => {
  const { map, told } = await showing(nodePorts(0, { 443: 'H', 2767: 'U' }));

  expect(await drawn(map)).toEqual({ 'free, reserved band': 86, free: 2_680, held: 1, 'in use': 1 });
  await point(map, 443);
  expect(await told.textContent()).toBe('30443: held');
  await point(map, 2_767);
  expect(await told.textContent()).toBe('32767: in use');
});

test('nothing is shown beyond the last cell', async () => {
  const { map, told } = await showing(nodePorts(0));

  await point(map, 2_767);
  await point(map, 2_769);

  expect(await told.textContent()).toBe('');
});
