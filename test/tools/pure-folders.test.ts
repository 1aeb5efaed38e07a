import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Lines that the linter must refuse in a folder without I/O, each with what it prints. */
const IMPURE = [
  ['export const now = Date.now();', "Unexpected use of 'Date'"],
  ['export const dice = Math.random();', "'Math.random' is restricted"],
  ['setTimeout(() => {}, 1);', "Unexpected use of 'setTimeout'"],
  ['export const id = crypto.randomUUID();', "Unexpected use of 'crypto'"],
  ['export const home = process.env.HOME;', "Unexpected use of 'process'"],
  ["export const page = fetch('http://a');", "Unexpected use of 'fetch'"],
] as const;

test('the linter refuses the clock, random numbers and I/O in each folder without I/O, and allows them elsewhere', () => {
  const { overrides } = JSON.parse(readInRepository('.oxlintrc.json')) as {
    readonly overrides: readonly { readonly files: readonly string[]; readonly rules: object }[];
  };
  const restricted = overrides.filter(({ rules }) => 'eslint/no-restricted-globals' in rules);
  const pure = restricted.flatMap(({ files }) => files.map((glob) => glob.replace('/**', '')));
  const root = temporaryFolder();
  copyFileSync(path.join(REPOSITORY, '.oxlintrc.json'), path.join(root, '.oxlintrc.json'));
  for (const folder of [...pure, 'lib/table']) {
    mkdirSync(path.join(root, folder), { recursive: true });
    writeFileSync(path.join(root, folder, 'impure.ts'), `${IMPURE.map(([code]) => code).join('\n')}\n`);
  }
  const oxlint = path.join(REPOSITORY, 'node_modules/.bin/oxlint');
  const { stdout } = spawnSync(oxlint, ['-f', 'unix', 'lib', 'cli'], { cwd: root, encoding: 'utf8' });
  const decide = ['lib/allocator', 'lib/leases', 'lib/range', 'lib/repair', 'lib/endpoints'];
  expect(pure).toEqual(expect.arrayContaining(decide));
  for (const folder of pure)
    for (const [at, [, printed]] of IMPURE.entries())
      expect(stdout).toMatch(new RegExp(`^${folder}/impure\\.ts:${at + 1}:\\d+: ${printed}`, 'm'));
  expect(stdout).not.toContain('lib/table/impure.ts');
});
