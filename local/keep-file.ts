import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { isNativeError } from 'node:util/types';
import { ownFolder } from './own-folder.ts';
import { replaceFile } from './replace-file.ts';
import { StartError } from './start-error.ts';

/**
 * Writes a file, and its folder, for as long as this process runs: nobody ever reads half of it, and nobody but this
 * user any of it. @returns what takes it away sooner. What another process has written there since stays.
 * @throws StartError when it cannot be written.
 */
export async function keepFile(file: string, text: string): Promise<() => void> {
  await writeWhole(file, text);
  const takeAway = () => {
    process.off('exit', takeAway);
    if (textOf(file) === text) rmSync(file, { force: true });
  };
  process.once('exit', takeAway);
  return takeAway;
}

async function writeWhole(file: string, text: string): Promise<void> {
  try {
    await ownFolder(path.dirname(file));
    await replaceFile(file, text, 0o600);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const code = isNativeError(error) && 'code' in error ? error.code : error;
    const message = `${file} cannot be written (${String(code)}): name a folder that can be written to with --data.`;
    throw new StartError(3, message, { cause: error });
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
