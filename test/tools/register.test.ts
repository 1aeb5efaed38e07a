import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTable } from '../../lib/table/dynamodb-create-table.ts';
import { startTableServer, type TableServer, tableServerClient } from '../../local/table-server.ts';

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

  test('says which table is missing', async () => {
    const outcome = await register('--table', 'nowhere', specFile('a', 'observe'));
    expect(outcome).toMatchObject({ code: 5, stderr: expect.stringContaining('"nowhere"') });
  });

  test('says how it is used', async () => {
    expect(await register('--tabel', 'fleet')).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage:') });
    expect(await register('--table', 'fleet')).toMatchObject({ code: 2, stderr: expect.stringContaining('Usage:') });
  });
});
