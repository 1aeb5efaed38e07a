import { expect, jest, test } from '@jest/globals';
import { servePage } from '../../cli/page/serve-page.ts';
import { openRunning } from '../../local/data-folder.ts';
import { localTable } from '../../local/local-environment.ts';
import { run } from '../../local/run.ts';
import { aFleetStatus } from '../support/a-fleet-status.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { eventually } from '../support/eventually.ts';
import { requestLocal } from '../support/request-local.ts';
import { running } from '../support/running.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { REBOUND_HOST, startBrowser } from './browser.ts';

jest.setTimeout(60_000);

const browser = running(startBrowser);
/** The address and the headers of each request that the server of another user received. */
const received: string[] = [];
const attacker = running(() =>
  serve(({ url, rawHeaders }, response) => {
    received.push(JSON.stringify([url, rawHeaders]));
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello');
  }),
);
const local = running(startLocalRun);

/** Runs the loops on an embedded cluster. */
async function startLocalRun() {
  const dataFolder = temporaryFolder();
  const ended = new AbortController();
  const printed: string[] = [];
  const write = (line: string) => void printed.push(line);
  const loops = run({ dataFolder }, ended.signal, { hints: [], write, paint: (_, text) => text });
  await eventually(() => expect(printed.join('\n')).toContain('created endpointslice'));
  const { running: found, client } = await openRunning(dataFolder);
  const close = async () => {
    client.destroy();
    ended.abort();
    await loops;
  };
  return { ...found, table: localTable(client), close };
}

interface Sent {
  readonly method?: 'POST';
  readonly mode?: 'cors' | 'no-cors';
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

type Requests = [string, Sent][];

/** Sends the requests from the page. Returns the result of each: `unreadable` if the browser hides the answer from the page. */
async function sendAll(requests: Requests): Promise<string[]> {
  return Promise.all(
    requests.map(([url, init]) =>
      fetch(url, init).then(
        (reply) => (reply.type === 'opaque' ? 'unreadable' : `${reply.status}`),
        () => 'unreadable',
      ),
    ),
  );
}

test('a page of another origin, or behind DNS rebinding, cannot write to a local run or read from it', async () => {
  const page = await browser.visit(`${attacker.url}/`);
  const item = { cluster: { S: '#clusters' }, key: { S: 'evil' }, value: { M: {} }, schema: { N: '1' } };
  const awsHeaders = {
    'x-amz-target': 'DynamoDB_20120810.PutItem',
    'x-amz-date': '20260102T030405Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=a/20260102/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
  };
  const put = (contentType: string): Sent => ({
    method: 'POST',
    headers: { ...awsHeaders, 'content-type': contentType },
    body: JSON.stringify({ TableName: local.tableName, Item: item }),
  });
  const create = (mode: 'cors' | 'no-cors'): Sent => ({
    method: 'POST',
    mode,
    headers: { 'content-type': mode === 'no-cors' ? 'text/plain' : 'application/json' },
    body: JSON.stringify({ metadata: { name: 'evil' } }),
  });
  const { tableEndpoint, apiServer } = local;
  const rebound = (url: string) => url.replace('127.0.0.1', REBOUND_HOST);

  const came = await page.evaluate(sendAll, [
    [tableEndpoint, put('application/json')],
    [tableEndpoint, put('application/x-amz-json-1.0')],
    [rebound(tableEndpoint), put('application/json')],
    [tableEndpoint, { mode: 'no-cors' }],
    [`${apiServer}/api/v1/namespaces`, create('no-cors')],
    [`${apiServer}/api/v1/namespaces`, create('cors')],
    [rebound(`${apiServer}/api/v1/namespaces`), create('no-cors')],
    [`${apiServer}/api/v1/namespaces`, {}],
  ] as Requests);

  expect(came).toEqual(Array(8).fill('unreadable'));
  expect(await local.table.get('#clusters', 'evil')).toBeUndefined();
  const { body } = await requestLocal(`${apiServer}/api/v1/namespaces`, { key: local.key });
  expect(body).toContain('kube-system');
  expect(body).not.toContain('evil');
});

test('a page whose host name now resolves to the API server can neither read from that server nor write to it', async () => {
  const page = await browser.visit(local.apiServer.replace('127.0.0.1', REBOUND_HOST));

  expect(await page.content()).toContain('Send the request to 127.0.0.1:');
  expect(
    await page.evaluate(sendAll, [
      ['/version', {}],
      ['/api/v1/namespaces', { method: 'POST' }],
    ] as Requests),
  ).toEqual(['421', '403']);
});

test('a server of another user at another port does not receive the key of the status page', async () => {
  const { url, close } = await servePage({ read: async () => aFleetStatus([]) });
  afterThisTest(close);
  const page = await browser.visit(url);
  await page.reload();
  expect(await page.locator('h1').textContent()).toBe('Clusters');
  received.length = 0;

  const another = `${attacker.url}/`;
  await page.evaluate(`location.href = ${JSON.stringify(another)}`);
  await page.getByRole('heading', { name: 'Hello' }).waitFor();
  await page.goto(another);

  const key = /[\w-]{24}/.exec(url)?.[0] ?? 'the URL of the page has no key';
  expect(received.filter((request) => request.startsWith('["/",'))).toHaveLength(2);
  expect(received.join('\n')).not.toContain(key);
  expect(received.join('\n')).not.toMatch(/cookie/i);
});
