import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const REPOSITORY = join(import.meta.dirname, '../..');
const SCREENSHOTS = join(REPOSITORY, '.cache/page');
/** A name that an attacker points to this machine after its page was loaded (DNS rebinding). */
export const REBOUND_HOST = 'rebound.test';

/** Root has no sandbox; and whatever is asked for, nothing leaves this machine. */
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

/** A Chromium without a window. It ends with this process. */
export interface TestBrowser {
  /** Opens a page in a profile of its own, and returns when it is loaded. */
  open(url: string, options?: BrowserContextOptions): Promise<WatchedPage>;
  /** Opens a hostile page: its requests are let out, and any certificate satisfies it. */
  visit(url: string): Promise<Page>;
  close(): Promise<void>;
}

/** A page, and what went wrong in it until now, in order. */
export interface WatchedPage {
  readonly page: Page;
  /** What it wrote to the console as errors. */
  readonly consoleErrors: readonly string[];
  /** What its scripts threw and nobody caught. */
  readonly pageErrors: readonly string[];
  /** `GET https://example.com/a.png`: what it wanted of other origins than its own. No such request is let out. */
  readonly strayRequests: readonly string[];
  close(): Promise<void>;
}

/** Starts the Chromium that `test/page/install-browser.sh` finds. @throws Error when there is none. */
export async function startBrowser(): Promise<TestBrowser> {
  const script = join(REPOSITORY, 'test/page/install-browser.sh');
  const executablePath = execFileSync('bash', [script, '--path'], { encoding: 'utf8' }).trim();
  if (executablePath === '') throw new Error('there is no Chromium: "npm run test:page" installs it, or says how');
  // Its profile is a temporary folder, which goes with it.
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS });
  return {
    async open(url, options) {
      const context = await browser.newContext({ serviceWorkers: 'block', ...options });
      try {
        return await openIn(context, url);
      } catch (error) {
        await context.close();
        throw error;
      }
    },
    visit: async (url) => {
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    close: () => browser.close(),
  };
}

async function openIn(context: BrowserContext, url: string): Promise<WatchedPage> {
  const { host, origin } = new URL(url);
  const consoleErrors: string[] = [];
  const pageErrors: string[] = [];
  const strayRequests: string[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error') consoleErrors.push(message.text());
  });
  context.on('weberror', (error) => pageErrors.push(String(error.error())));
  const isStray = (asked: string) => {
    const { protocol, origin: askedOrigin, host: askedHost } = new URL(asked);
    if (protocol === 'data:' || protocol === 'blob:') return false;
    return askedOrigin !== origin && !(protocol.startsWith('ws') && askedHost === host);
  };
  // A redirect is told here only.
  context.on('request', (request) => {
    if (isStray(request.url())) strayRequests.push(`${request.method()} ${request.url()}`);
  });
  await context.route(
    (asked) => isStray(asked.href),
    (route) => route.abort(),
  );
  await context.routeWebSocket(
    (asked) => isStray(asked.href),
    async (socket) => {
      strayRequests.push(`GET ${socket.url()}`);
      await socket.close();
    },
  );
  const page = await context.newPage();
  await page.goto(url);
  return { page, consoleErrors, pageErrors, strayRequests, close: () => context.close() };
}

let axeSource: string | undefined;

/** What axe-core has against the page as it is now, one text each: empty for a page that all can use. */
export async function checkAccessibility(page: Page): Promise<string[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // Evaluated and not added as an element: a page may forbid scripts that are not its own.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(({ id, impact, help, nodes }) => {
    const places = nodes.map(({ target, failureSummary = '' }) =>
      `${target.join(' ')}: ${failureSummary}`.replaceAll('\n', '\n  '),
    );
    return [`${id} (${impact}): ${help}`, ...places].join('\n  ');
  });
}

/** Keeps the whole page as a picture for whoever looks at it later. Returns the file. */
export async function screenshot(page: Page, name: string): Promise<string> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  const file = join(SCREENSHOTS, `${name}.png`);
  await page.screenshot({ path: file, fullPage: true });
  return file;
}
