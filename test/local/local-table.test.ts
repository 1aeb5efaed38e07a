import { randomUUID } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, jest, test } from '@jest/globals';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { createTable } from '../../local/create-table.ts';
import { LOCAL_TABLE } from '../../local/local-environment.ts';
import { newRunKey } from '../../local/local-request.ts';
import { type LocalTable, openLocalTable } from '../../local/local-table.ts';
import { writeRunning } from '../../local/running.ts';
import { openTableFolder, startTableServer, type TableServer, tableServerClient } from '../../local/table-server.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KEY = newRunKey();
const root = temporaryFolder();

const tableIn = ({ client, tableName }: Pick<LocalTable, 'client' | 'tableName'>): KeyValueTable =>
  dynamoDbTable({ client, tableName, deadline: new AbortController().signal, nowMs: Date.now, newWriteId: randomUUID });

/** A table with one item. */
async function filled(server: TableServer): Promise<void> {
  const client = tableServerClient(server);
  await createTable(client, LOCAL_TABLE, { pollMs: 1 });
  await tableIn({ client, tableName: LOCAL_TABLE }).put({ cluster: 'c', key: 'k', value: 7, schema: 1 }, undefined);
  client.destroy();
}

async function readIn(folder: string): Promise<unknown> {
  const table = await openLocalTable({ folder });
  try {
    return (await tableIn(table).get('c', 'k'))?.value;
  } finally {
    await table.close();
  }
}

const facts = ({ endpoint, key }: TableServer) => ({
  pid: process.pid,
  startedAt: '2026-01-02T03:04:05Z',
  cluster: 'c',
  tableEndpoint: endpoint,
  tableName: LOCAL_TABLE,
  key,
  apiServer: 'http://127.0.0.1:1',
  kubeconfig: '/k',
});

/** The iterators of the database below dynalite. */
const requireAsDynalite = createRequire(createRequire(import.meta.url).resolve('dynalite'));
const { AbstractValueIterator } = createRequire(requireAsDynalite.resolve('level'))('abstract-level') as {
  readonly AbstractValueIterator: { readonly prototype: { close(): Promise<void> } };
};

test('a table closes the iterator of each query', async () => {
  const server = await startTableServer({ key: KEY });
  await filled(server);
  const client = tableServerClient(server);
  const close = jest.spyOn(AbstractValueIterator.prototype, 'close');
  for (let queries = 1; queries <= 3; queries++) {
    await tableIn({ client, tableName: LOCAL_TABLE }).list('c', '');
    await eventually(() => expect(close).toHaveBeenCalledTimes(queries));
  }
  close.mockRestore();
  client.destroy();
  await server.close();
});

describe('a table on this machine', () => {
  test('a table on this machine is that of the running process, which continues', async () => {
    const folder = join(root, 'running');
    const server = await startTableServer({ key: KEY });
    await filled(server);
    const callOff = await writeRunning(folder, facts(server));
    expect(await readIn(folder)).toBe(7);
    const { running, close } = await openLocalTable({ folder });
    expect(running).toMatchObject({ cluster: 'c', pid: process.pid, folder });
    await close();
    expect(await readIn(folder)).toBe(7);
    callOff();
    await server.close();
  });

  test('a table on this machine is the one in the folder while no process runs, command after command', async () => {
    const folder = join(root, 'kept');
    const server = await openTableFolder(folder, KEY);
    await filled(server);
    await server.close();
    expect(await readIn(folder)).toBe(7);
    expect(await readIn(folder)).toBe(7);
    const table = await openLocalTable({ folder });
    expect(table.running).toBeUndefined();
    await table.close();
  });

  test('a table on this machine is waited for while another command has it open', async () => {
    const folder = join(root, 'contended');
    const server = await openTableFolder(folder, KEY);
    await filled(server);
    await server.close();
    expect(await Promise.all([readIn(folder), readIn(folder)])).toEqual([7, 7]);
  });

  test('a folder that another process keeps open is reported', async () => {
    const folder = join(root, 'locked');
    const server = await openTableFolder(folder, KEY);
    await expect(openLocalTable({ folder })).rejects.toMatchObject({
      exitCode: 5,
      message: `The table in ${folder} cannot be opened: another process has it open. Name another folder with --data.`,
    });
    await server.close();
  });

  test('a table on this machine cannot be opened at a path that is no folder', async () => {
    const file = join(root, 'file');
    await writeFile(file, '');
    await expect(openTableFolder(file, KEY)).rejects.toMatchObject({
      exitCode: 5,
      message: expect.stringMatching(/cannot be opened: .*(not a directory|exists)/i),
    });
  });

  test.each([
    ['where there is no folder', false],
    ['in an empty folder', true],
  ])('%s has no table, and gets none: the error contains the resolution', async (_, isThere) => {
    const folder = join(root, `none-${isThere}`);
    if (isThere) await mkdir(folder);
    await expect(openLocalTable({ folder })).rejects.toMatchObject({
      name: 'StartError',
      exitCode: 5,
      message: `There is no table in ${folder}: start one with "kbctl run" (of a cluster: "kbctl run --kubeconfig FILE -f cluster.yml"), or name one with --table.`,
    });
    expect(await readdir(folder).catch(() => 'no folder')).toEqual(isThere ? [] : 'no folder');
  });
});
