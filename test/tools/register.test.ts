import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type RegisteredCluster, readCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import { createTable } from '../../lib/table/dynamodb-create-table.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { registerPackaged } from '../../lib/table/packaged-registration.ts';
import { startTableServer, type TableServer, tableServerClient } from '../../local/table-server.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { countedWriteIds } from '../support/write-ids.ts';

const root = join(import.meta.dirname, '..', '..');
let folder: string;
let server: TableServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-register-'));
  server = await startTableServer();
  const client = tableServerClient(server);
  await createTable(client, 'fleet', { pollMs: 1 });
  client.destroy();
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function specFile(name: string, mode: string): string {
  const file = join(folder, `${name}.yml`);
  const text = `name: ${name}\nmode: ${mode}\nkubeconfig: { ssm: /kbc/${name} }\napiServers: [{ address: 203.0.113.7 }]\n`;
  writeFileSync(file, text);
  return file;
}

function register(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_REGION: 'eu-test-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [join(root, 'tools/register.ts'), ...words], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

/** What is in the table that the command wrote to. */
async function withTable<T>(look: (table: KeyValueTable) => Promise<T>): Promise<T> {
  const client = tableServerClient(server);
  const own = { nowMs: () => 0, newWriteId: countedWriteIds(), deadline: new AbortController().signal };
  try {
    return await look(dynamoDbTable({ ...own, client, tableName: 'fleet' }));
  } finally {
    client.destroy();
  }
}

function registered(name: string): Promise<RegisteredCluster | undefined> {
  return withTable((table) => readCluster(table, name));
}

describe('npm run register', () => {
  test('registers each cluster, and writes only what changed', async () => {
    const files = [specFile('a', 'observe'), specFile('b', 'observe')];
    expect(await register('--table', 'fleet', ...files)).toMatchObject({
      code: 0,
      stdout: 'a: registered, generation 1\nb: registered, generation 1\n',
    });
    specFile('b', 'enforce');
    expect(await register('--table', 'fleet', ...files)).toMatchObject({
      code: 0,
      stdout: 'a: unchanged, generation 1\nb: registered, generation 2\n',
    });
  });

  test('registers none when one of them is not valid, and names every fault', async () => {
    const outcome = await register(
      '--table',
      'fleet',
      specFile('c', 'enforce'),
      specFile('d', 'maybe'),
      join(folder, 'no.yml'),
    );
    expect(outcome).toMatchObject({ code: 3, stdout: '' });
    expect(outcome.stderr).toMatch(/d\.yml[\s\S]*mode[\s\S]*no\.yml cannot be read[\s\S]*Nothing was registered/);
    expect(await register('--table', 'fleet', specFile('c', 'enforce'))).toMatchObject({
      stdout: 'c: registered, generation 1\n',
    });
  });

  test('makes another stack the owner, and says when there is no such cluster', async () => {
    await register('--table', 'fleet', specFile('e', 'observe'));
    expect(await register('--table', 'fleet', '--take-over', 'new-stack', 'e')).toMatchObject({
      code: 0,
      stdout: 'e: owned by new-stack\n',
    });
    expect(await register('--table', 'fleet', '--take-over', 'new-stack', 'nobody')).toMatchObject({
      code: 3,
      stderr: 'No cluster of the name nobody is registered in the table.\n',
    });
  });

  test('holds the passes of clusters with a reason and an end, and lets them go on', async () => {
    await register('--table', 'fleet', specFile('f', 'observe'));
    const paused = await register('--table', 'fleet', '--pause', 'an upgrade', '--hours', '2', 'f');
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringMatching(/^f: paused until \d{4}-.*Z\n$/) });
    expect((await registered('f'))?.paused).toMatchObject({ reason: 'an upgrade', untilMs: expect.any(Number) });
    expect(await register('--table', 'fleet', '--resume', 'f')).toMatchObject({ code: 0, stdout: 'f: not paused\n' });
    expect((await registered('f'))?.paused).toBeUndefined();
  });

  test('holds the passes of all clusters, and lets them go on', async () => {
    expect(await register('--table', 'fleet', '--pause', 'a move', '--all')).toMatchObject({ code: 0 });
    expect(await withTable(readPauseOfAll)).toMatchObject({ reason: 'a move' });
    expect(await register('--table', 'fleet', '--resume', '--all')).toMatchObject({ code: 0 });
    expect(await withTable(readPauseOfAll)).toBeUndefined();
  });

  test('ends a cluster that was registered, and leaves one that is packaged to its package', async () => {
    await register('--table', 'fleet', specFile('g', 'observe'));
    expect(await register('--table', 'fleet', '--remove', 'g')).toMatchObject({
      code: 0,
      stdout: 'g: removed; its endpoints stay as they are\n',
    });
    expect(await registered('g')).toBeUndefined();
    expect(await register('--table', 'fleet', '--remove', 'g')).toMatchObject({ code: 3 });

    const spec = aClusterSpec({ name: 'h' });
    const packager = { stack: 'a-stack', startedAtMs: 1, nowMs: 1 };
    await withTable((table) => registerPackaged(table, spec, packager));
    expect(await register('--table', 'fleet', '--remove', 'h')).toMatchObject({
      code: 3,
      stderr: 'h is the cluster.yml of the stack a-stack: take it out there and deploy.\n',
    });
  });

  test.each([
    ['two things at once', ['--remove', '--resume', 'a'], /One at a time/],
    ['an end that is none', ['--pause', 'x', '--hours', 'soon', 'a'], /--hours must be/],
    ['to remove all', ['--remove', '--all'], /--all goes with/],
    ['all and one', ['--resume', '--all', 'a'], /--all goes with/],
    ['all of nothing', ['--all'], /are of --pause/],
  ])('refuses %s', async (_, words, reason) => {
    expect(await register('--table', 'fleet', ...words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(reason),
    });
  });

  test('says which table is missing', async () => {
    const outcome = await register('--table', 'nowhere', specFile('a', 'observe'));
    expect(outcome).toMatchObject({ code: 5, stderr: expect.stringContaining('"nowhere"') });
  });

  test('says how it is used', async () => {
    expect(await register('--tabel', 'fleet')).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage:') });
    expect(await register('--table', 'fleet')).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage:') });
  });
});
