import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { localTable } from '../../local/local-environment.ts';
import { listen } from '../../local/stand-in/api-servers.ts';
import { NAMESPACES } from '../../local/stand-in/resources.ts';
import { openTableFolder, startTableServer } from '../../local/table-server.ts';
import { eventually } from '../support/eventually.ts';
import { type LocalRequest, requestLocal } from '../support/request-local.ts';
import { running } from '../support/running.ts';
import { IDENTITY, readyStandIn } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KEY = 'the-key';
const WRONG_KEY = 'a key that was guessed';

const server = running(async () => {
  const standIn = await readyStandIn();
  return { standIn, ...(await listen(standIn, IDENTITY)) };
});

const namespaces = () => `${server.url}/api/v1/namespaces`;
const names = () => server.standIn.store.list(NAMESPACES, undefined, () => true).map(({ metadata }) => metadata.name);
const create = (name: string, asking: LocalRequest) =>
  requestLocal(namespaces(), { method: 'POST', body: JSON.stringify({ metadata: { name } }), ...asking });

test.each<[string, number, LocalRequest]>([
  ['from a web page', 403, { headers: { origin: 'https://evil.example' } }],
  ['from a page that is a file', 403, { headers: { origin: 'null' } }],
  ['under another host name, as after DNS rebinding', 421, { headers: { host: 'evil.example' } }],
  ['under localhost', 421, { headers: { host: 'localhost' } }],
  ['without the key', 401, { headers: { authorization: undefined } }],
  ['with a wrong key', 401, { key: WRONG_KEY }],
  ['with the content type of a form', 415, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
  ['without a content type', 415, { headers: { 'content-type': undefined } }],
])('the stand-in API server refuses a write %s', async (_, status, asking) => {
  const answer = await create('attacked', asking);
  expect(answer).toMatchObject({ status, body: expect.stringMatching(/^\{"kind":"Status".*"code":\d+\}$/) });
  expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  expect(names()).not.toContain('attacked');
});

test.each<[string, number, LocalRequest]>([
  ['a read without the key', 401, { headers: { authorization: undefined } }],
  ['a preflight request', 403, { method: 'OPTIONS', headers: { origin: 'https://evil.example' } }],
  ['a deletion without the key', 401, { method: 'DELETE', headers: { authorization: undefined } }],
])('the stand-in API server refuses %s', async (_, status, asking) => {
  expect((await requestLocal(`${namespaces()}/default`, asking)).status).toBe(status);
});

test('without a token, the stand-in API server answers the health and version paths, and refuses other paths that begin with the same text', async () => {
  const anonymous = { headers: { authorization: undefined } };
  const statuses = ['/readyz', '/livez?verbose', '/version', '/readyz/../api/v1/namespaces', '/versions'].map(
    async (path) => (await requestLocal(server.url + path, anonymous)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 200, 401, 401]);
});

const tableServer = running(() => startTableServer({ key: KEY }));

const signedBy = (key: string) =>
  `AWS4-HMAC-SHA256 Credential=${key}/20260102/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0`;
const listTables = (headers: LocalRequest['headers'] = {}) =>
  requestLocal(tableServer.endpoint, {
    method: 'POST',
    body: '{}',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'DynamoDB_20120810.ListTables',
      'x-amz-date': '20260102T030405Z',
      authorization: signedBy(KEY),
      ...headers,
    },
  });

test.each<[string, number, LocalRequest['headers']]>([
  ['from a web page', 403, { origin: 'https://evil.example' }],
  ['without a signature', 401, { authorization: undefined }],
  ['with another access key', 401, { authorization: signedBy(WRONG_KEY) }],
  ['with an access key that only begins with the key', 401, { authorization: signedBy(`${KEY}-and-more`) }],
  ['in the JSON type that a page may send after a preflight request', 415, { 'content-type': 'application/json' }],
])('a table server refuses a request %s', async (_, status, headers) => {
  const answer = await listTables(headers);
  expect(answer).toMatchObject({ status, body: expect.stringContaining('AccessDeniedException') });
  expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
});

test('a table server refuses a preflight request and a signature in the URL', async () => {
  const origin = 'https://evil.example';
  expect((await requestLocal(tableServer.endpoint, { method: 'OPTIONS', headers: { origin } })).status).toBe(403);
  const query = `?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${KEY}/20260102/local/dynamodb/aws4_request`;
  const inAddress = { method: 'POST', body: '{}', headers: { authorization: undefined } };
  expect((await requestLocal(`${tableServer.endpoint}/${query}`, inAddress)).status).toBe(401);
});

const root = temporaryFolder();

/** The iterators of the database below dynalite. */
const requireAsDynalite = createRequire(createRequire(import.meta.url).resolve('dynalite'));
const { AbstractValueIterator } = createRequire(requireAsDynalite.resolve('level'))('abstract-level') as {
  readonly AbstractValueIterator: { readonly prototype: { close(): Promise<void> } };
};

test('the table server closes the database iterator of each query', async () => {
  const server = await startTableServer({ key: KEY });
  const table = localTable(server.client);
  await table.put({ cluster: 'c', key: 'k', value: 7, schema: 1 }, undefined);
  const close = jest.spyOn(AbstractValueIterator.prototype, 'close');
  for (let queries = 1; queries <= 3; queries++) {
    await table.list('c', '');
    await eventually(() => expect(close).toHaveBeenCalledTimes(queries));
  }
  close.mockRestore();
  await server.close();
});

test('the start of the table server fails if another process has the folder open, or if the path is not a folder', async () => {
  const folder = join(root, 'locked');
  const server = await openTableFolder(folder, KEY);
  await expect(openTableFolder(folder, KEY)).rejects.toMatchObject({
    exitCode: 5,
    message: `The table in ${folder} cannot be opened: another process has it open. Name another folder with --data.`,
  });
  await server.close();
  const file = join(root, 'file');
  await writeFile(file, '');
  await expect(openTableFolder(file, KEY)).rejects.toMatchObject({
    exitCode: 5,
    message: expect.stringMatching(/cannot be opened: .*(not a directory|exists)/i),
  });
});
