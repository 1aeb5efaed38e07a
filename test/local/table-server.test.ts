import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { startTableServer, tableServerClient } from '../../local/table-server.ts';

const KEY = 'the-key';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'table-server-'));
});

afterAll(() => rm(folder, { recursive: true }));

/** What `use` makes of the table of a server that is started for it. */
async function withTable<T>(path: string | undefined, use: (table: KeyValueTable) => Promise<T>): Promise<T> {
  const server = await startTableServer({ key: KEY, ...(path !== undefined && { path }) });
  const client = tableServerClient(server);
  try {
    await createTable(client, 'a-table', { pollMs: 1 });
    const deadline = new AbortController().signal;
    return await use(dynamoDbTable({ client, tableName: 'a-table', deadline, nowMs: () => 0, newWriteId: () => 'w' }));
  } finally {
    client.destroy();
    await server.close();
  }
}

const putOne = (table: KeyValueTable) => table.put({ cluster: 'c', key: 'k', value: 7, schema: 1 }, undefined);
const getOne = async (table: KeyValueTable) => (await table.get('c', 'k'))?.value;

describe('a table server', () => {
  test.each<[string, () => string | undefined, unknown]>([
    ['keeps what is in its folder until it is started there again', () => join(folder, 'kept'), 7],
    ['forgets what is in memory', () => undefined, undefined],
  ])('%s', async (_, path, value) => {
    await withTable(path(), putOne);
    expect(await withTable(path(), getOne)).toBe(value);
  });

  test('does not start on a folder that is open, and harms neither', async () => {
    const path = join(folder, 'open');
    await withTable(path, async (table) => {
      await putOne(table);
      await expect(startTableServer({ key: KEY, path })).rejects.toThrow('another process has it open');
      expect(await getOne(table)).toBe(7);
    });
    expect(await withTable(path, getOne)).toBe(7);
  });

  test('does not start on a path that is no folder, and says why', async () => {
    const path = join(folder, 'file');
    await writeFile(path, '');
    await expect(startTableServer({ key: KEY, path })).rejects.toThrow(/Not a directory|exists/i);
  });
});
