import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * Replaces a file, so that no reader finds half of it. The draft beside it is always a new file under a random name: no link
 * that another user put there is followed.
 * @param mode of the new file, less the umask
 */
export async function replaceFile(file: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, content, { flag: 'wx', mode });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
