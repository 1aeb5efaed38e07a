import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AxeResults } from 'axe-core';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SCREENSHOTS = join(REPOSITORY, '.cache/page');
/** A name that an attacker points to this machine after its page was loaded (DNS rebinding). */
export const REBOUND_HOST = 'rebound.test';

/** Chromium has no sandbox when it runs as root. No request leaves this machine, because only names of this machine resolve. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--host-resolver-rules=MAP ${REBOUND_HOST} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost`,
];

interface WatchedPage {
  readonly page: Page;
  /** Errors in the console, uncaught errors of scripts, and requests to other origins, which are blocked. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/**
 * Starts the headless Chromium that `test/page/install-browser.sh` finds. The browser ends with this process.
 * @throws Error if the script finds no Chromium
 */
export async function startBrowser() {
  const script = join(REPOSITORY, 'test/page/install-browser.sh');
  const executablePath = execFileSync('bash', [script, '--path'], { encoding: 'utf8' }).trim();
  if (executablePath === '') throw new Error('there is no Chromium: "npm run test:page" installs it, or says how');
  // The browser's profile is a temporary folder, which is deleted when the browser closes.
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS });
  const folder = temporaryFolder();
  const opened: WatchedPage[] = [];
  /** Opens a page in a profile of its own, and returns when it is loaded. */
  const open = async (url: string, options?: BrowserContextOptions) => {
    const context = await browser.newContext({ serviceWorkers: 'block', ...options });
    try {
      const watched = await openIn(context, url);
      opened.push(watched);
      return watched;
    } catch (error) {
      await context.close();
      throw error;
    }
  };
  return {
    open,
    /** Opens markup as a file. */
    view: (markup: string, options?: BrowserContextOptions) => {
      const file = join(folder, `${opened.length}.html`);
      writeFileSync(file, markup);
      return open(pathToFileURL(file).href, options);
    },
    /** Opens a hostile page. Its requests are not blocked, and any certificate is accepted. */
    visit: async (url: string) => {
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    /** Closes the open pages, and returns their problems. */
    closePages: async () => {
      const pages = opened.splice(0);
      const found = pages.flatMap(({ problems }) => problems);
      await Promise.all(pages.map((page) => page.close()));
      return found;
    },
    close: () => browser.close(),
  };
}

async function openIn(context: BrowserContext, url: string): Promise<WatchedPage> {
  const { host, origin } = new URL(url);
  const problems: string[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  context.on('weberror', (error) => problems.push(String(error.error())));
  const isStray = (asked: string) => {
    const { protocol, origin: askedOrigin, host: askedHost } = new URL(asked);
    if (protocol === 'data:' || protocol === 'blob:') return false;
    return askedOrigin !== origin && !(protocol.startsWith('ws') && askedHost === host);
  };
  // Only this event reports redirects.
  context.on('request', (request) => {
    if (isStray(request.url())) problems.push(`${request.method()} ${request.url()}`);
  });
  await context.route(
    (asked) => isStray(asked.href),
    (route) => route.abort(),
  );
  await context.routeWebSocket(
    (asked) => isStray(asked.href),
    async (socket) => {
      problems.push(`GET ${socket.url()}`);
      await socket.close();
    },
  );
  const page = await context.newPage();
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}

let axeSource: string | undefined;

/** Returns the violations that axe-core finds in the page, one text each. An accessible page has none. */
export async function checkAccessibility(page: Page): Promise<string[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // The script is evaluated instead of added as an element, because a page may forbid scripts that are not its own.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(({ id, impact, help, nodes }) => {
    const places = nodes.map(({ target, failureSummary = '' }) =>
      `${target.join(' ')}: ${failureSummary}`.replaceAll('\n', '\n  '),
    );
    return [`${id} (${impact}): ${help}`, ...places].join('\n  ');
  });
}

/** Returns by how many pixels the page is wider than its window. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
}

/** Saves a screenshot of the whole page, and returns the file. */
export async function screenshot(page: Page, name: string): Promise<string> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  const file = join(SCREENSHOTS, `${name}.png`);
  await page.screenshot({ path: file, fullPage: true });
  return file;
}
