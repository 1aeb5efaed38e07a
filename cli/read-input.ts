import { createReadStream } from 'node:fs';
import { configurationError } from './errors.ts';
import { failureCode } from './failure-code.ts';

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
