import { realpath, stat, writeFile } from 'node:fs/promises';
import { replaceFile } from '../local/data-folder.ts';
import { configurationError, failureCode } from './errors.ts';

/**
 * Replaces a file completely or not at all; writes directly to a pipe or the like.
 * @throws CliError if it cannot
 */
export async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  try {
    const there = await stat(file).catch(() => undefined);
    if (there !== undefined && !there.isFile()) await writeFile(file, content);
    // A link stays a link.
    else await replaceFile(there === undefined ? file : await realpath(file), content);
  } catch (error) {
    const message = `Cannot write ${file} (${failureCode(error)}): use a file in a writable folder.`;
    throw configurationError(message, { cause: error });
  }
}
