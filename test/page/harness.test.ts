import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkAccessibility, startBrowser, type TestBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';

const PICTURE = Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64');
/** A page whose parts are good, and one that has each fault. */
const PAGES: Readonly<Record<string, string>> = {
  '/good': '<h1>Good</h1><img alt="a picture" src="/picture.png"><script>console.log("said")</script>',
  '/bad': `<h1>Bad</h1>
    <p id="pale" style="color: #ccc; background: #fff">hardly to be read</p><img id="nameless" src="/picture.png">
    <img alt="" src="http://example.com/picture.png"><img alt="" src="/elsewhere">
    <script>
      new WebSocket("ws://example.com/socket");
      fetch("http://127.0.0.1:9/", { method: "POST" }).catch(() => {});
      console.error("said by the page");
      setTimeout(() => { throw new Error("thrown by the page") });
    </script>`,
};

let server: Server;
let browser: TestBrowser;

beforeAll(async () => {
  server = createServer(({ url = '' }, response) => {
    const body = PAGES[url];
    if (url === '/elsewhere') response.writeHead(302, { location: 'http://example.com/moved.png' }).end();
    else if (body === undefined) response.writeHead(200, { 'content-type': 'image/gif' }).end(PICTURE);
    else {
      const page = `<!doctype html><html lang="en"><title>A page</title><main>${body}</main></html>`;
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

const open = (path: string) => browser.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);

test('a correct page has no faults', async () => {
  const { page, close, ...faults } = await open('/good');

  expect(await page.textContent('h1')).toBe('Good');
  expect(faults).toEqual({ consoleErrors: [], pageErrors: [], strayRequests: [] });
  expect(await checkAccessibility(page)).toEqual([]);
  await close();
});

test('errors, exceptions, requests to other origins and barriers are reported', async () => {
  const { page, close, ...faults } = await open('/bad');

  await eventually(() => {
    expect(faults.consoleErrors).toContain('said by the page');
    expect(faults.pageErrors).toEqual(['Error: thrown by the page']);
    expect([...faults.strayRequests].sort()).toEqual([
      'GET http://example.com/moved.png',
      'GET http://example.com/picture.png',
      'GET ws://example.com/socket',
      'POST http://127.0.0.1:9/',
    ]);
  });
  expect(await checkAccessibility(page)).toEqual([
    expect.stringMatching(/^color-contrast \(serious\): .*\n {2}#pale: /),
    expect.stringMatching(/^image-alt \(critical\): .*\n {2}#nameless: /),
  ]);
  await close();
});
