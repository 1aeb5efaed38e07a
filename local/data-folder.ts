import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, type Stats } from 'node:fs';
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { attempt, codeOf } from '../lib/util/values.ts';
import { StartError } from './start-options.ts';

/** The folder in the working directory that contains one folder for each cluster. */
export const DATA_ROOT = '.kbctl';

export function dataFolder(cluster: string, named: string | undefined): string {
  return path.resolve(named ?? path.join(DATA_ROOT, cluster));
}

/** Returns a path for a shell, relative if it is below the working directory. */
export function shellWord(file: string): string {
  const relative = path.relative('.', file);
  const shown = relative.startsWith('..') ? file : relative;
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}

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
export function isOwn({ uid }: { readonly uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/**
 * Replaces a file with a file that only this user may read. The content is first written to a draft, so that no reader
 * sees half of it. The draft is a new file with a random name, so that no link of another user is followed.
 */
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
 * Writes a file, and creates its folder. The file is removed when this process exits.
 * @returns a function that removes the file earlier. The file stays if another process has replaced it
 * @throws StartError if the file cannot be written
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
