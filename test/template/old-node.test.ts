import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const file = join(temporaryFolder(), 'kbctl.mjs');
const node = (...words: readonly string[]) => spawnSync(process.execPath, words, { cwd: REPOSITORY, encoding: 'utf8' });

test('the kbctl of a release checks the version of Node before anything else', () => {
  expect(node('tools/build-cli.mjs', '--whole', file).status).toBe(0);
  expect(node(file, 'version').status).toBe(0);
  const old = "Object.defineProperty(process.versions, 'node', { value: '20.20.2' })";
  const refused = node('--import', `data:text/javascript,${encodeURIComponent(old)}`, file, 'status', '--table', 'x');
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('kbctl needs Node.js 22.19 or later') });
});
