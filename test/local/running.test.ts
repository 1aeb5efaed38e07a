import { chmod, chown, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { findRunning, freeFolder, keepFile, openRunning, readRunning, writeRunning } from '../../local/data-folder.ts';
import { newRunKey } from '../../local/local-server.ts';
import { startTableServer } from '../../local/table-server.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { running } from '../support/running.ts';
import { serve } from '../support/serve.ts';
import { startSilentServer } from '../support/silent-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let root: string;
let folder: string;
let file: string;
const server = running(() => startTableServer({ key: newRunKey() }));
let facts: Parameters<typeof writeRunning>[1];

beforeAll(() => {
  facts = {
    pid: process.pid,
    startedAt: '2026-01-02T03:04:05.678Z',
    cluster: 'prod-eu-1',
    tableEndpoint: server.endpoint,
    tableName: 'a-table',
    key: server.key,
    apiServer: 'https://10.0.0.1:6443',
    kubeconfig: '/etc/kube/config',
  };
});

beforeEach(() => {
  root = temporaryFolder();
  folder = join(root, 'data');
  file = join(folder, 'running.json');
});

async function leave(content: object | string, where = folder): Promise<void> {
  await mkdir(where, { recursive: true });
  await writeFile(join(where, 'running.json'), typeof content === 'string' ? content : JSON.stringify(content));
}

test('writeRunning writes a file that only this user can read, and readRunning returns the process in this file until the file is removed', async () => {
  const callOff = await writeRunning(folder, { ...facts, page: 'http://127.0.0.1:8080/' });
  expect(await readdir(folder)).toEqual(['running.json']);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readRunning(folder)).toEqual({ schema: 1, ...facts, page: 'http://127.0.0.1:8080/', folder });
  callOff();
  expect(await readdir(folder)).toEqual([]);
  expect(await readRunning(folder)).toBeUndefined();
});

test.each<[string, () => object | string]>([
  ['whose table does not answer', () => ({ schema: 1, ...facts, tableEndpoint: 'http://127.0.0.1:1' })],
  ['whose table is on another host', () => ({ schema: 1, ...facts, tableEndpoint: 'http://192.0.2.1:80' })],
  ['of an unknown layout', () => ({ schema: 2, ...facts })],
  ['that is empty', () => ''],
])('readRunning ignores a file %s, and the next process replaces the file', async (_, content) => {
  await leave(content());
  expect(await readRunning(folder)).toBeUndefined();
  expect(await freeFolder('prod-eu-1', folder)).toBe(folder);
  afterThisTest(await writeRunning(folder, facts));
  expect(await readRunning(folder)).toMatchObject({ cluster: 'prod-eu-1', pid: process.pid });
});

(process.getuid?.() === 0 ? test : test.skip)('readRunning ignores a file of another user', async () => {
  await leave({ schema: 1, ...facts });
  expect(await readRunning(folder)).toMatchObject({ cluster: 'prod-eu-1' });
  await chown(file, 12_345, 12_345);
  expect(await readRunning(folder)).toBeUndefined();
});

test('readRunning returns no process if another server, or no server, answers at the port of the table', async () => {
  const [other, silent] = [await serve((_, response) => response.end('hello')), await startSilentServer()];
  for (const tableEndpoint of [other.url, `http://${silent.authority}`]) {
    await leave({ schema: 1, ...facts, tableEndpoint });
    expect(await readRunning(folder)).toBeUndefined();
  }
  await Promise.all([other.close(), silent.close()]);
});

test('if a second process has replaced running.json, the end of the first process does not remove the file', async () => {
  const first = await writeRunning(folder, facts);
  const second = await writeRunning(folder, { ...facts, startedAt: '2026-01-02T04:00:00.000Z' });
  first();
  expect(await readRunning(folder)).toMatchObject({ startedAt: '2026-01-02T04:00:00.000Z' });
  second();
});

test('for a folder that is not writable, the error of writeRunning contains the resolution', async () => {
  await leave('');
  await expect(writeRunning(join(file, 'below'), facts)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringMatching(
      /below\/running\.json cannot be written \([A-Z]+\): name a folder that can be written to with --data\.$/,
    ),
  });
  expect(await readFile(file, 'utf8')).toBe('');
});

test('findRunning returns the live processes below a root folder, sorted by the names of their clusters', async () => {
  afterThisTest(await writeRunning(join(folder, 'one'), { ...facts, cluster: 'zoo' }));
  afterThisTest(await writeRunning(join(folder, 'two'), { ...facts, cluster: 'ape' }));
  await leave({ schema: 1, ...facts, tableEndpoint: 'http://127.0.0.1:1' }, join(folder, 'gone'));
  await mkdir(join(folder, 'empty'));
  await writeFile(join(folder, 'a-file'), '');
  const found = await findRunning(folder);
  expect(found.map(({ cluster, folder: where }) => [cluster, where])).toEqual([
    ['ape', join(folder, 'two')],
    ['zoo', join(folder, 'one')],
  ]);
  expect(await findRunning(join(folder, 'nowhere'))).toEqual([]);
});

test('openRunning fails for a folder without a running process, and the error contains the resolution', async () => {
  await expect(openRunning(folder)).rejects.toMatchObject({
    exitCode: 5,
    message: expect.stringMatching(/^No local run is active in .*: start one with "kbctl run"/),
  });
});

const before = process.cwd();
afterEach(() => process.chdir(before));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;
const keep = async (text: string) => afterThisTest(await keepFile(file, text));

test('keepFile creates a file that only this user can read, in a new folder that only this user can read', async () => {
  await keep('the key');
  expect(await Promise.all([folder, file].map(modeOf))).toEqual([0o700, 0o600]);
  expect(await readdir(folder)).toEqual(['running.json']);
});

test.each<[string, () => string]>([
  ['in place of the file', () => file],
  ['in place of the draft of the file', () => `${file}.${process.pid}`],
])('keepFile does not write through a symbolic link %s', async (_, place) => {
  const victim = join(root, 'victim');
  await writeFile(victim, 'precious');
  await mkdir(folder, { mode: 0o700 });
  await symlink(victim, place());
  await keep('the key');
  expect(await readFile(victim, 'utf8')).toBe('precious');
  expect((await lstat(file)).isFile()).toBe(true);
  expect(await readFile(file, 'utf8')).toBe('the key');
});

test.each<[string, () => string]>([
  ['of its folder', () => folder],
  ['of .kbctl', () => join(root, '.kbctl')],
  ['of a folder in .kbctl', () => join(root, '.kbctl', 'embedded')],
])('keepFile fails and creates nothing if there is a symbolic link in place %s', async (_, link) => {
  const target = join(root, 'of-another-program');
  await mkdir(target, { mode: 0o700 });
  await mkdir(dirname(link()), { recursive: true, mode: 0o700 });
  await symlink(target, link());
  const folder = link().includes('.kbctl') ? join(root, '.kbctl', 'embedded') : link();
  process.chdir(root);
  await expect(keepFile(join(folder, 'running.json'), 'the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `${link()} is a symbolic link: remove it, or name a folder with --data.`,
  });
  expect(await readdir(target)).toEqual([]);
});

test('keepFile refuses a folder that other users can write to', async () => {
  await mkdir(folder);
  await chmod(folder, 0o777);
  await expect(keep('the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `Other users may write to ${folder}: run "chmod 700" on it, or name another with --data.`,
  });
  expect(await readdir(folder)).toEqual([]);
});

(process.getuid?.() === 0 ? test : test.skip)('keepFile refuses a folder of another user', async () => {
  await mkdir(folder, { mode: 0o700 });
  await chown(folder, 12_345, 12_345);
  await expect(keep('the key')).rejects.toMatchObject({
    exitCode: 3,
    message: `${folder} belongs to another user: name a folder of your own with --data.`,
  });
});
