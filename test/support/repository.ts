import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of this repository. */
export const REPOSITORY = join(import.meta.dirname, '../..');

/** Returns the text of a file. @param file The path in this repository. */
export function readInRepository(file: string): string {
  return readFileSync(join(REPOSITORY, file), 'utf8');
}

/** Returns the paths in this repository of all files and folders in these folders. */
export function filesInRepository(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
}
