import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  checkAccessibility,
  screenshot,
  startBrowser,
  type TestBrowser,
  type WatchedPage,
} from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';

/** Bodies of pages, by their paths. */
const PAGES: Readonly<Record<string, string>> = {
  '/well': '<h1>All is well</h1><img alt="a picture" src="/picture.png"><script>console.log("said")</script>',
  '/console': '<h1>Console</h1><script>console.error("said by the page")</script>',
  '/throws': '<h1>Throws</h1><script>setTimeout(() => { throw new Error("thrown by the page") })</script>',
  '/image': '<h1>Image</h1><img alt="" src="http://example.com/picture.png">',
  '/redirect': '<h1>Redirect</h1><img alt="" src="/elsewhere">',
  '/socket': '<h1>Socket</h1><script>new WebSocket("ws://example.com/socket")</script>',
  '/fetch': '<h1>Fetch</h1><script>fetch("http://127.0.0.1:9/", { method: "POST" }).catch(() => {})</script>',
  '/no-alt': '<h1>No text</h1><img id="nameless" src="/picture.png">',
  '/pale': '<h1>Pale</h1><p id="pale" style="color: #ccc; background: #fff">hardly to be read</p>',
};
const PICTURE = Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64');

let server: Server;
let origin: string;
let browser: TestBrowser;
let opened: WatchedPage | undefined;

beforeAll(async () => {
  server = createServer((request, response) => {
    const body = PAGES[request.url ?? ''];
    if (request.url === '/elsewhere') response.writeHead(302, { location: 'http://example.com/moved.png' }).end();
    else if (body === undefined) response.writeHead(200, { 'content-type': 'image/gif' }).end(PICTURE);
    else {
      const page = `<!doctype html><html lang="en"><title>A page</title><main>${body}</main></html>`;
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await startBrowser();
});
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

async function open(path: string): Promise<WatchedPage> {
  opened = await browser.open(`${origin}${path}`);
  return opened;
}

test('a correct page has no faults', async () => {
  const { page, consoleErrors, pageErrors, strayRequests } = await open('/well');

  expect(await page.textContent('h1')).toBe('All is well');
  expect({ consoleErrors, pageErrors, strayRequests }).toEqual({
    consoleErrors: [],
    pageErrors: [],
    strayRequests: [],
  });
  expect(await checkAccessibility(page)).toEqual([]);
});

test('an error on the console is reported', async () => {
  const { consoleErrors } = await open('/console');

  await eventually(() => expect(consoleErrors).toEqual(['said by the page']));
});

test('an exception is reported', async () => {
  const { pageErrors } = await open('/throws');

  await eventually(() => expect(pageErrors).toEqual(['Error: thrown by the page']));
});

describe('a request to another origin is reported and blocked', () => {
  test.each([
    ['an image', '/image', 'GET http://example.com/picture.png'],
    ['a redirect', '/redirect', 'GET http://example.com/moved.png'],
    ['a WebSocket', '/socket', 'GET ws://example.com/socket'],
    ['a request to another port', '/fetch', 'POST http://127.0.0.1:9/'],
  ])('%s', async (_, path, told) => {
    const { strayRequests } = await open(path);

    await eventually(() => expect(strayRequests).toEqual([told]));
  });
});

test.each([
  ['an image without a text', '/no-alt', /^image-alt \(critical\): .*\n {2}#nameless: /],
  ['a text that is too pale', '/pale', /^color-contrast \(serious\): .*\n {2}#pale: /],
])('%s is reported with its place', async (_, path, violation) => {
  const { page } = await open(path);

  expect(await checkAccessibility(page)).toEqual([expect.stringMatching(violation)]);
});

test('a screenshot is kept', async () => {
  const { page } = await open('/well');

  const file = await screenshot(page, 'harness');

  expect(readFileSync(file).subarray(1, 4).toString()).toBe('PNG');
  rmSync(file);
});
