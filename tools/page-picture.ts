import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeWhole } from '../cli/files.ts';
import { renderFleetPage } from '../cli/page/render-pages.ts';
import { aFleetStatus, clustersOfEachKind } from '../test/support/a-fleet-status.ts';
import { startBrowser } from '../test/support/browser.ts';

/** Takes the picture of the status page for README.md. Run by hand when the page changes. */
const PICTURE = join(import.meta.dirname, '../docs/status-page.jpg');
const WIDTH = 1_080;
/** Taller than the page, so that nothing scrolls. */
const HEIGHT = 4_000;
const MOST_BYTES = 200_000;

const folder = await mkdtemp(join(tmpdir(), 'page-picture-'));
const browser = await startBrowser();
try {
  const file = join(folder, 'page.html');
  await writeWhole(file, renderFleetPage(aFleetStatus(clustersOfEachKind())));
  const { page } = await browser.open(pathToFileURL(file).href, {
    viewport: { width: WIDTH, height: HEIGHT },
    colorScheme: 'light',
  });
  await page.locator('details summary').first().click();
  // Cut after the first map: the rest is more of the same.
  const end = await page.locator('.legend').first().boundingBox();
  if (end === null) throw new Error('the first cluster of the demonstration has no map');
  const clip = { x: 0, y: 0, width: WIDTH, height: end.y + end.height + 20 };
  const picture = await page.screenshot({ clip, type: 'jpeg', quality: 60 });
  if (picture.length > MOST_BYTES)
    throw new Error(`the picture would have ${picture.length} bytes: show less of the page`);
  await writeFile(PICTURE, picture);
  console.log(`${PICTURE}: ${picture.length} bytes`);
} finally {
  await browser.close();
  await rm(folder, { recursive: true });
}
