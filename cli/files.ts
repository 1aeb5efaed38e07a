import { createReadStream } from 'node:fs';
import { realpath, stat, writeFile } from 'node:fs/promises';
import { replaceFile } from '../local/data-folder.ts';
import { configurationError, failureCode } from './errors.ts';

export interface ReadInputOptions {
  readonly mostBytes: number;
  /** What is too large is something else than that: `a file of ranges`. */
  readonly what: string;
  readonly stdin: AsyncIterable<Uint8Array>;
}

/**
 * All of what `-f` names: a file, or `-` for the standard input.
 * @throws CliError when it cannot be read, or does not end.
 */
export async function readInput(name: string, { mostBytes, what, stdin }: ReadInputOptions): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of name === '-' ? stdin : (createReadStream(name) as AsyncIterable<Uint8Array>)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > mostBytes) break;
    }
  } catch (error) {
    throw configurationError(
      `${name} cannot be read (${failureCode(error)}): name a file that exists and that you may read.`,
    );
  }
  if (bytes <= mostBytes) return Buffer.concat(chunks);
  const place = name === '-' ? 'The standard input' : name;
  throw configurationError(`${place} has more than ${mostBytes / (1024 * 1024)} MB: it is not ${what}.`);
}

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
