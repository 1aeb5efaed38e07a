import { constants, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import * as z from 'zod/mini';
import { DATA_ROOT, isOwn, keepFile } from './data-folder.ts';
import { tableAuthorization } from './local-request.ts';
import { StartError } from './start-options.ts';
import { tableServerClient } from './table-client.ts';

const FILE = 'running.json';

const content = z.object({
  schema: z.literal(1),
  pid: z.int().check(z.positive()),
  startedAt: z.iso.datetime(),
  cluster: z.string(),
  // Only loopback URLs are accepted, so that a manipulated file cannot make a command connect to another host.
  tableEndpoint: z.string().check(z.regex(/^http:\/\/127\.0\.0\.1:\d+$/)),
  tableName: z.string(),
  /** The key of this run, which its table and its API server require. */
  key: z.string().check(z.regex(/^[\w-]{43}$/)),
  apiServer: z.string(),
  kubeconfig: z.string(),
  /** A context in the kubeconfig file. Default: the file's current context. */
  context: z.optional(z.string()),
  page: z.optional(z.string()),
});

type Content = z.infer<typeof content>;

/** A process that runs the loops of a cluster on this machine, with its URLs and files. */
export interface Running extends Content {
  /** The absolute path of the folder that contains the file. The path is not part of the file's content. */
  readonly folder: string;
}

const ANSWER_MS = 2_000;

/** Returns all runs that have a folder in `dataRoot`, sorted by the names of their clusters. */
export async function findRunning(dataRoot: string = DATA_ROOT): Promise<Running[]> {
  const entries = await readdir(dataRoot, { withFileTypes: true }).catch(() => []);
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => path.join(dataRoot, name));
  const found = await Promise.all(folders.map(readRunning));
  return found.filter((running) => running !== undefined).sort((one, other) => (one.cluster < other.cluster ? -1 : 1));
}

/**
 * Returns the process that runs with this folder; `undefined` if its table server does not answer, because the process has then
 * ended without removing its file.
 */
export async function readRunning(folder: string): Promise<Running | undefined> {
  try {
    const written = content.parse(JSON.parse(await ownText(path.join(folder, FILE))));
    return (await answers(written)) ? { ...written, folder: path.resolve(folder) } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the process that runs with this folder, and a client of its table.
 * @throws StartError if no process runs with this folder
 */
export async function openRunning(folder: string) {
  const running = await readRunning(folder);
  if (running === undefined) {
    throw new StartError(
      5,
      `No local run is active in ${folder}: start one with "kbctl run" (of a cluster: "kbctl run --kubeconfig FILE -f cluster.yml"), or name a table with --table.`,
    );
  }
  return { running, client: tableServerClient({ endpoint: running.tableEndpoint, key: running.key }) };
}

/** @throws StartError if another process runs with this folder */
export async function refuseSecond(folder: string): Promise<void> {
  const running = await readRunning(folder);
  if (running === undefined) return;
  const { cluster, pid, startedAt, page } = running;
  const where = page === undefined ? '' : `, and its status page is ${page}`;
  throw new StartError(
    3,
    `${cluster} is already running (process ${pid}, since ${startedAt}${where}). End that one with Ctrl-C first, or name another folder with --data.`,
  );
}

/**
 * Writes the file by which other commands find this process, and replaces the file of an earlier process. The file is
 * removed by the returned function, or when this process exits.
 * @throws StartError if the folder cannot be written to
 */
export function writeRunning(folder: string, facts: Omit<Content, 'schema'>): Promise<() => void> {
  return keepFile(path.join(folder, FILE), `${JSON.stringify({ schema: 1, ...facts }, undefined, 2)}\n`);
}

/** Returns the text of a file, but an empty text if it is another user's, because commands trust its port and its key. */
async function ownText(file: string): Promise<string> {
  await using opened = await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  return isOwn(await opened.stat()) ? await opened.readFile('utf8') : '';
}

/** Returns whether an answer is from a table server: another process might have the port now. Throws if there is no answer. */
async function answers({ tableEndpoint, key }: Content): Promise<boolean> {
  const headers = tableAuthorization(key);
  const reply = await fetch(tableEndpoint, { headers, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
  return (await reply.text()).startsWith('healthy: dynamodb');
}
