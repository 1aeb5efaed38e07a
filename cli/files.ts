import { createReadStream } from 'node:fs';
import { realpath, stat, writeFile } from 'node:fs/promises';
import { replaceFile } from '../local/data-folder.ts';
import { configurationError, failureCode } from './errors.ts';

export interface ReadInputOptions {
  readonly mostBytes: number;
  /** `a file of ranges`. */
  readonly what: string;
  readonly stdin: AsyncIterable<Uint8Array>;
}

/** Reads the file of `-f`, or the standard input for `-`. @throws CliError when it cannot be read, or is too large */
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
    throw configurationError(`Cannot read ${name} (${failureCode(error)}): use an existing, readable file.`);
  }
  if (bytes <= mostBytes) return Buffer.concat(chunks);
  const place = name === '-' ? 'The standard input' : name;
  throw configurationError(`${place} is larger than ${mostBytes / (1024 * 1024)} MB: it is not ${what}.`);
}

/** Replaces a file completely or not at all; writes to anything else, such as a pipe. @throws CliError when it cannot */
export async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  try {
    const there = await stat(file).catch(() => undefined);
    if (there !== undefined && !there.isFile()) await writeFile(file, content);
    // A link stays one.
    else await replaceFile(there === undefined ? file : await realpath(file), content);
  } catch (error) {
    const message = `Cannot write ${file} (${failureCode(error)}): use a file in a writable folder.`;
    throw configurationError(message, { cause: error });
  }
}
