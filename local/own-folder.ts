import { chmod, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { DATA_ROOT } from './data-folder.ts';
import { StartError } from './start-error.ts';

/**
 * Makes a folder, and those above it that are missing, for this user alone. One that is there must belong to this user, and
 * no other user may write to it: keys and tables are kept in it, and its files are believed.
 * @throws StartError when it is another user's, or open to others.
 */
export async function ownFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const root = path.dirname(folder);
  if (root !== path.resolve(DATA_ROOT)) return refuseOthers(folder);
  // Those are ours by their names: earlier versions made them readable for all.
  for (const each of [root, folder]) {
    await refuseForeign(each);
    await chmod(each, 0o700);
  }
}

async function refuseOthers(folder: string): Promise<void> {
  await refuseForeign(folder);
  const { mode } = await stat(folder);
  if ((mode & 0o022) === 0) return;
  throw new StartError(3, `Other users may write to ${folder}: run "chmod 700" on it, or name another with --data.`);
}

async function refuseForeign(folder: string): Promise<void> {
  if (isOwn(await stat(folder))) return;
  throw new StartError(3, `${folder} belongs to another user: name a folder of your own with --data.`);
}

/** On Windows every file is taken for this user's. */
export function isOwn({ uid }: { readonly uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}
