import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LOCAL_TABLE } from './local-environment.ts';
import { newRunKey } from './local-request.ts';
import { type Running, readRunning } from './running.ts';
import { StartError } from './start-options.ts';
import { openTableFolder, tableServerClient } from './table-server.ts';

export interface LocalTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** The process that owns the table; absent: this process has opened it. */
  readonly running?: Running;
  close(): Promise<void>;
}

/**
 * Opens the table of the process that runs with this folder, or else the one in the folder.
 * @throws StartError if there is neither, or the folder cannot be opened.
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
    // It may have started just now.
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
  return { client, tableName: LOCAL_TABLE, close };
}

function tableOf(running: Running): LocalTable {
  const client = tableServerClient({ endpoint: running.tableEndpoint, key: running.key });
  return { client, tableName: running.tableName, running, close: async () => client.destroy() };
}

/** Every LevelDB has this file once it is complete. */
async function holdsTable(folder: string): Promise<boolean> {
  return stat(path.join(folder, 'CURRENT')).then(
    (file) => file.isFile(),
    () => false,
  );
}
