import { realpath, stat, writeFile } from 'node:fs/promises';
import { replaceFile } from '../local/replace-file.ts';
import { configurationError } from './errors.ts';
import { failureCode } from './failure-code.ts';

/**
 * Writes a file, whole or not at all, over what is there. What is no file, such as a pipe, is written to as it is.
 * @throws CliError when it cannot be written.
 */
export async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  try {
    const there = await stat(file).catch(() => undefined);
    if (there !== undefined && !there.isFile()) await writeFile(file, content);
    // A link stays one.
    else await replaceFile(there === undefined ? file : await realpath(file), content);
  } catch (error) {
    throw configurationError(
      `${file} cannot be written (${failureCode(error)}): name a file in a folder that you may write to.`,
      {
        cause: error,
      },
    );
  }
}
