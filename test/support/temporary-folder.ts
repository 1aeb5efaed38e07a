import { mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates a folder, which temporary-files.mjs removes after the tests. */
export function temporaryFolder(): string {
  return mkdtempSync(join(realpathSync(tmpdir()), 'test-'));
}
