import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { startBrowser, type WatchedPage } from './browser.ts';

/** A browser for the tests of one file, and the pages that a test opens in it. */
export interface PageViewer {
  /** A page as a file. */
  view(markup: string, options?: BrowserContextOptions): Promise<WatchedPage>;
  open(url: string, options?: BrowserContextOptions): Promise<WatchedPage>;
  /** What went wrong in the pages that are open, which end here. */
  closePages(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function startViewer(): Promise<PageViewer> {
  const browser = await startBrowser();
  const folder = mkdtempSync(join(tmpdir(), 'status-page-'));
  const opened: WatchedPage[] = [];
  const open = async (url: string, options?: BrowserContextOptions) => {
    const watched = await browser.open(url, options);
    opened.push(watched);
    return watched;
  };
  return {
    open,
    view: (markup, options) => {
      const file = join(folder, `${opened.length}.html`);
      writeFileSync(file, markup);
      return open(pathToFileURL(file).href, options);
    },
    closePages: async () => {
      const pages = opened.splice(0);
      const wrong = pages.flatMap((page) => [...page.consoleErrors, ...page.pageErrors, ...page.strayRequests]);
      await Promise.all(pages.map((page) => page.close()));
      return wrong;
    },
    close: async () => {
      await browser.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** By how many pixels the page is wider than its window. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
}
