import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, type Stats } from 'node:fs';
import { constants, lstat, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as z from 'zod/mini';
import { attempt, codeOf } from '../lib/util/values.ts';
import { StartError } from './local-cluster.ts';
import { tableAuthorization } from './local-server.ts';
import { tableServerClient } from './table-client.ts';

/** The folder in the working directory that contains one folder for each cluster. */
const DATA_ROOT = '.kbctl';

/**
 * Creates a folder and missing parents for this user alone. The folder contains keys and tables, and its files are trusted.
 * @throws StartError if the folder is a link, belongs to another user, or is writable by others
 */
export async function ownFolder(folder: string): Promise<void> {
  const root = path.dirname(folder);
  const checked = root === path.resolve(DATA_ROOT) ? [root, folder] : [folder];
  // The folders are also checked before they are created, because the creation would follow a link.
  for (const each of checked) refuseUnsafe(each, await lstat(each).catch(() => undefined));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const each of checked) refuseUnsafe(each, await lstat(each));
}

function refuseUnsafe(folder: string, found: Stats | undefined): void {
  const fault = found && faultOf(folder, found);
  if (fault !== undefined) throw new StartError(3, fault);
}

function faultOf(folder: string, found: Stats): string | undefined {
  if (found.isSymbolicLink()) return `${folder} is a symbolic link: remove it, or name a folder with --data.`;
  if (!isOwn(found)) return `${folder} belongs to another user: name a folder of your own with --data.`;
  if ((found.mode & 0o022) === 0) return undefined;
  return `Other users may write to ${folder}: run "chmod 700" on it, or name another with --data.`;
}

/** Returns whether a file belongs to this user. On Windows, every file counts as a file of this user. */
function isOwn({ uid }: { readonly uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/** Replaces a file atomically with a file that only this user may read. If the path is a link, replaces the link. */
export async function replaceFile(file: string, content: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, content, { flag: 'wx', mode: 0o600 });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

/**
 * Writes a file, and creates its folder. The returned function, or the exit of this process, removes the file unless another
 * process has replaced it. @throws StartError if the file cannot be written
 */
export async function keepFile(file: string, text: string): Promise<() => void> {
  try {
    await ownFolder(path.dirname(file));
    await replaceFile(file, text);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const message = `${file} cannot be written (${codeOf(error)}): name a folder that can be written to with --data.`;
    throw new StartError(3, message, { cause: error });
  }
  const remove = () => {
    process.off('exit', remove);
    if (attempt(() => readFileSync(file, 'utf8')) === text) rmSync(file, { force: true });
  };
  process.once('exit', remove);
  return remove;
}

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

/** A process that runs the loops of a cluster on this machine, with its URLs and files. `folder` is absolute. */
export interface Running extends Content {
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

/** Returns the process that runs with this folder; `undefined` if its table server does not answer. */
export async function readRunning(folder: string): Promise<Running | undefined> {
  try {
    const written = content.parse(JSON.parse(await ownText(path.join(folder, FILE))));
    return (await answers(written)) ? { ...written, folder: path.resolve(folder) } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the process that runs with this folder, and a client of the process's table. @throws StartError if no process runs */
export async function openRunning(folder: string) {
  const running = await readRunning(folder);
  if (running === undefined) {
    const remedy = `start one with "kbctl run" (of a cluster: "kbctl run --kubeconfig FILE -f cluster.yml"), or name a table with --table`;
    throw new StartError(5, `No local run is active in ${folder}: ${remedy}.`);
  }
  return { running, client: tableServerClient(running.tableEndpoint, running.key) };
}

/** Returns the absolute folder of a cluster. @throws StartError if another process runs with this folder */
export async function freeFolder(cluster: string, named: string | undefined): Promise<string> {
  const folder = path.resolve(named ?? path.join(DATA_ROOT, cluster));
  const running = await readRunning(folder);
  if (running === undefined) return folder;
  const { pid, startedAt, page } = running;
  const where = page === undefined ? '' : `, and its status page is ${page}`;
  const remedy = 'End that one with Ctrl-C first, or name another folder with --data';
  throw new StartError(
    3,
    `${running.cluster} is already running (process ${pid}, since ${startedAt}${where}). ${remedy}.`,
  );
}

/** Writes the file by which other commands find this process. `keepFile` states when the file is removed. @throws StartError */
export function writeRunning(folder: string, facts: Omit<Content, 'schema'>): Promise<() => void> {
  return keepFile(path.join(folder, FILE), `${JSON.stringify({ schema: 1, ...facts }, undefined, 2)}\n`);
}

/** Returns the text of a file; an empty text if another user owns the file, because commands trust the port and the key in it. */
async function ownText(file: string): Promise<string> {
  await using opened = await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  return isOwn(await opened.stat()) ? await opened.readFile('utf8') : '';
}

/** Returns whether a table server answers at the port: another process might have the port now. Throws if there is no answer. */
async function answers({ tableEndpoint, key }: Content): Promise<boolean> {
  const headers = tableAuthorization(key);
  const reply = await fetch(tableEndpoint, { headers, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
  return (await reply.text()).startsWith('healthy: dynamodb');
}
