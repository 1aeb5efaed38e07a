import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { TABLE_NAME } from './local-environment.ts';
import { newRunKey } from './local-request.ts';
import { type Running, readRunning } from './running.ts';
import { StartError } from './start-options.ts';
import { openTableFolder, tableServerClient } from './table-server.ts';

export interface LocalTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** Whose it is; absent: nothing runs, and the table was opened by this process. */
  readonly running?: Running;
  close(): Promise<void>;
}

/**
 * The table of the process that runs with this folder; where none does, the one that is kept in the folder.
 * @throws StartError when there is neither, and when the folder cannot be opened.
 */
export async function openLocalTable({ folder }: { readonly folder: string }): Promise<LocalTable> {
  const running = await readRunning(folder);
  if (running !== undefined) return tableOf(running);
  if (!(await holdsTable(folder))) {
    throw new StartError(
      5,
      `There is no table in ${folder}: start one with "kbctl run" (of a cluster: "kbctl run --kubeconfig FILE -f cluster.yml"), or name one with --table.`,
    );
  }
  const server = await openTableFolder(folder, newRunKey()).catch(async (error: unknown) => {
    // It may have begun to run just now.
    const begun = await readRunning(folder);
    if (begun === undefined) throw error;
    return begun;
  });
  if ('pid' in server) return tableOf(server);
  const client = tableServerClient(server);
  const close = async () => {
    client.destroy();
    await server.close();
  };
  return { client, tableName: TABLE_NAME, close };
}

function tableOf(running: Running): LocalTable {
  const client = tableServerClient({ endpoint: running.tableEndpoint, key: running.key });
  return { client, tableName: running.tableName, running, close: async () => client.destroy() };
}

/** Every LevelDB has this file, and only once it is whole. */
async function holdsTable(folder: string): Promise<boolean> {
  return stat(path.join(folder, 'CURRENT')).then(
    (file) => file.isFile(),
    () => false,
  );
}
