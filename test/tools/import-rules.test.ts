import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Files that break a rule, each with the beginning of the line that the check prints. */
const VIOLATIONS = [
  ['lib/repair/a.ts', "import type {} from '../loops/b.ts'", 'arrows-of-lib-repair: lib/repair/a.ts → lib/loops/b.ts'],
  ['lib/loops/a.ts', "import 'node:https'", 'http-only-in-kubernetes: lib/loops/a.ts'],
  ['functions/a.ts', "import '@kubernetes/client-node'", 'kubernetes-client-only-in-local: functions/a.ts'],
  ['lib/dispatch/a.ts', "import '@aws-sdk/client-dynamodb'", 'aws-sdk-only-in-its-adapters: lib/dispatch/a.ts'],
  ['lib/range/a.ts', "import 'node:fs'", 'pure-imports-no-node-builtin: lib/range/a.ts → fs'],
  ['lib/cluster/a.ts', "import 'knip'", 'pure-imports-only-what-computes: lib/cluster/a.ts'],
  ['lib/table/a.ts', "import './a.ts'", 'no-cycles: lib/table/a.ts'],
  ['functions/b.ts', "import '../lib/misc/a.ts'", 'folder-without-arrows: functions/b.ts → lib/misc/a.ts'],
  ['local/a.ts', "import '../cli/a.ts'", 'arrows-of-local: local/a.ts → cli/a.ts'],
  ['cli/a.ts', "import '../functions/a.ts'", 'arrows-of-cli: cli/a.ts → functions/a.ts'],
  ['lib/kubernetes/a.ts', "import './away.ts'", 'imports-resolve: lib/kubernetes/a.ts → ./away.ts'],
] as const;

test('npm run layers reads files of each folder, and reports each import that breaks a rule of .dependency-cruiser.mjs', () => {
  const root = temporaryFolder();
  symlinkSync(path.join(REPOSITORY, 'node_modules'), path.join(root, 'node_modules'));
  for (const [file, text] of [...VIOLATIONS, ['lib/loops/b.ts', 'export const b = 8;'], ['lib/misc/a.ts', '']]) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), `${text}\n`);
  }
  const [, option, rules, ...folders] = JSON.parse(readInRepository('package.json')).scripts.layers.split(' ');
  for (const folder of folders) mkdirSync(path.join(root, folder), { recursive: true });
  const depcruise = path.join(REPOSITORY, 'node_modules/.bin/depcruise');
  const args = [option, path.join(REPOSITORY, rules), ...folders];
  const { status, stdout } = spawnSync(depcruise, args, { cwd: root, encoding: 'utf8' });
  expect(status).toBe(VIOLATIONS.length);
  for (const [, , printed] of VIOLATIONS) expect(stdout).toContain(printed);
});

/** Lines that the linter must refuse in a folder without I/O, each with what it prints. */
const IMPURE = [
  ['export const now = Date.now();', "Unexpected use of 'Date'"],
  ['export const dice = Math.random();', "'Math.random' is restricted"],
  ['setTimeout(() => {}, 1);', "Unexpected use of 'setTimeout'"],
  ['export const id = crypto.randomUUID();', "Unexpected use of 'crypto'"],
  ['export const home = process.env.HOME;', "Unexpected use of 'process'"],
  ["export const page = fetch('http://a');", "Unexpected use of 'fetch'"],
] as const;

test('the linter refuses the clock, random numbers and I/O in each folder of pure code, and allows them elsewhere', () => {
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
