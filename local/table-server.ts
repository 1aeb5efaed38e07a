import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import dynalite from 'dynalite';
import { codeOf, defined } from '../lib/util/values.ts';
import { ownFolder } from './data-folder.ts';
import { StartError } from './local-cluster.ts';
import { LOCAL_TABLE } from './local-environment.ts';
import { type LocalRules, listenOnLoopback, refusalOf, tableKeyOf } from './local-server.ts';
import { createTable, tableServerClient } from './table-client.ts';

/**
 * Starts a table server with the local table on a free port of the loopback. Tables are in the folder `path`, or else in memory.
 * @throws Error if the folder cannot be opened, mostly because another process has it open
 */
export async function startTableServer({ key, path }: { readonly key: string; readonly path?: string }) {
  if (path !== undefined) await proveThatItOpens(path);
  letIteratorsReturn();
  const server = dynalite({ ...defined({ path }), createTableMs: 0, deleteTableMs: 0 });
  const [dynaliteAnswers] = server.listeners('request') as [RequestListener];
  server.removeAllListeners('request');
  const { host, close } = await listenOnLoopback(server);
  server.on('request', (request, response) => {
    const refusal = refusalOf(request, { ...RULES, host, key });
    if (refusal !== undefined) {
      const { status, message } = refusal;
      // Closes the connection without reading the body of the request.
      response.writeHead(status, { 'content-type': AWS_JSON, connection: 'close' });
      response.end(JSON.stringify({ __type: 'com.amazon.coral.service#AccessDeniedException', message }));
      return;
    }
    dynaliteAnswers(request, response);
    // dynalite throws an uncaught exception if the sender abandons its request.
    request.removeAllListeners('error');
    request.on('error', () => undefined);
  });
  const endpoint = `http://${host}`;
  const client = tableServerClient(endpoint, key);
  const closeBoth = () => close().finally(() => client.destroy());
  // dynalite opens its folder in the background, and answers the first request only after that.
  await createTable(client, LOCAL_TABLE).catch(async (error: unknown) => {
    await closeBoth();
    throw error;
  });
  return { endpoint, key, client, close: closeBoth };
}

const AWS_JSON = 'application/x-amz-json-1.0';

const RULES: Omit<LocalRules, 'host' | 'key'> = { keyOf: tableKeyOf, mediaTypes: [AWS_JSON] };

/** Starts a table server for the table in a folder. Creates a missing folder. @throws StartError if the table cannot be opened */
export async function openTableFolder(folder: string, key: string) {
  try {
    await ownFolder(folder);
    return await startTableServer({ key, path: folder });
  } catch (error) {
    if (error instanceof StartError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const message = `The table in ${folder} cannot be opened: ${why}. Name another folder with --data.`;
    throw new StartError(5, message, { cause: error });
  }
}

const requireAsDynalite = createRequire(createRequire(import.meta.url).resolve('dynalite'));

interface Closable {
  open(): Promise<void>;
  close(): Promise<void>;
  return?(): Promise<void>;
}

/** Adds `return` to the iterators of the database, because dynalite 4.0.0 calls `return` at the end of each query. */
function letIteratorsReturn(): void {
  const requireAsLevel = createRequire(requireAsDynalite.resolve('level'));
  const classes: Record<string, { readonly prototype: Closable }> = requireAsLevel('abstract-level');
  for (const name of ['AbstractKeyIterator', 'AbstractValueIterator']) {
    const { prototype } = classes[name] ?? {};
    if (prototype)
      prototype.return ??= function returned(this: Closable) {
        return this.close();
      };
  }
}

/** Checks that dynalite can open its folder, because dynalite's own failure to do so cannot be caught. */
async function proveThatItOpens(folder: string): Promise<void> {
  const { Level } = requireAsDynalite('level') as { Level: new (folder: string) => Closable };
  const database = new Level(folder);
  try {
    await database.open();
  } catch (error) {
    const { cause = error } = Object(error);
    throw new Error(codeOf(cause) === 'LEVEL_LOCKED' ? 'another process has it open' : cause.message, { cause: error });
  }
  await database.close();
}
