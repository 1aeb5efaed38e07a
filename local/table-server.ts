import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isNativeError } from 'node:util/types';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';
import { createDynamoClient } from '../lib/table/dynamodb-client.ts';
import { StartError } from './start-error.ts';

/** A DynamoDB in this process. */
export interface TableServer {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** Ends it, and every connection to it. */
  close(): Promise<void>;
}

/** A command has a folder open for moments: whoever comes meanwhile waits that long. */
const OPEN_TRIES = 10;
const OPEN_PAUSE_MS = 150;

/**
 * Starts on a free port of the loopback. Tables are kept in the folder `path` when it is given, else in memory.
 * @throws Error when the folder cannot be opened, above all because another process has it open.
 */
export async function startTableServer({ path }: { readonly path?: string } = {}): Promise<TableServer> {
  if (path !== undefined) await proveThatItOpens(path);
  const server = dynalite({ ...(path !== undefined && { path }), createTableMs: 0, deleteTableMs: 0 });
  // It answers a request that its sender gives up by an exception that nobody could catch.
  server.on('request', (request) => {
    request.removeAllListeners('error');
    request.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

/** A client of it: it takes any credentials, and none of the environment's are sent to it. */
export function tableServerClient({ endpoint }: Pick<TableServer, 'endpoint'>): DynamoDBClient {
  return createDynamoClient({
    endpoint,
    region: 'local',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
}

/**
 * Starts on the table in a folder, which is made where there is none.
 * @throws StartError when it cannot be opened.
 */
export async function openTableFolder(folder: string): Promise<TableServer> {
  for (let tries = 1; ; tries++) {
    try {
      await mkdir(folder, { recursive: true });
      return await startTableServer({ path: folder });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (why !== IN_USE || tries === OPEN_TRIES) {
        const message = `The table in ${folder} cannot be opened: ${why}. Name another folder with --data.`;
        throw new StartError(5, message, { cause: error });
      }
    }
    await sleep(OPEN_PAUSE_MS);
  }
}

const IN_USE = 'another process has it open';

/** What dynalite keeps a folder with. */
interface LevelDb {
  open(): Promise<void>;
  close(): Promise<void>;
}

/** dynalite itself opens its folder in the background, and fails where nobody can catch it. */
async function proveThatItOpens(folder: string): Promise<void> {
  const requireAsDynalite = createRequire(createRequire(import.meta.url).resolve('dynalite'));
  const { Level } = requireAsDynalite('level') as { Level: new (folder: string) => LevelDb };
  const database = new Level(folder);
  try {
    await database.open();
  } catch (error) {
    const cause = isNativeError(error) && isNativeError(error.cause) ? error.cause : error;
    const isLocked = isNativeError(cause) && 'code' in cause && cause.code === 'LEVEL_LOCKED';
    const why = isNativeError(cause) ? cause.message : String(cause);
    throw new Error(isLocked ? IN_USE : why, { cause: error });
  }
  await database.close();
}
