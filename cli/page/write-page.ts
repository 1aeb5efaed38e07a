import { rename, rm, writeFile } from 'node:fs/promises';
import { configurationError } from '../errors.ts';

/**
 * Writes a page to a file, whole or not at all.
 * @throws CliError when the file cannot be written.
 */
export async function writePage(file: string, page: string): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(unfinished, page);
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    const why = error instanceof Error ? error.message : String(error);
    throw configurationError(
      `the page cannot be written to ${file}: ${why}. Name a file in a folder that you may write to`,
      { cause: error },
    );
  }
}
