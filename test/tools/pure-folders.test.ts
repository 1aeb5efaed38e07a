import { execFile } from 'node:child_process';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { REPOSITORY, readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const impure = [
  { name: 'the clock', code: 'export const now = Date.now();', printed: "Unexpected use of 'Date'" },
  { name: 'the current date', code: 'export const today = new Date();', printed: "Unexpected use of 'Date'" },
  { name: 'a random number', code: 'export const dice = Math.random();', printed: "'Math.random' is restricted" },
  { name: 'a timer', code: 'setTimeout(() => {}, 1);', printed: "Unexpected use of 'setTimeout'" },
  { name: 'a random id', code: 'export const id = crypto.randomUUID();', printed: "Unexpected use of 'crypto'" },
  { name: 'the environment', code: 'export const home = process.env.HOME;', printed: "Unexpected use of 'process'" },
  { name: 'the network', code: "export const page = fetch('http://a');", printed: "Unexpected use of 'fetch'" },
];

const { overrides } = JSON.parse(readInRepository('.oxlintrc.json')) as {
  readonly overrides: readonly { readonly files: readonly string[]; readonly rules: object }[];
};
const pure = overrides
  .filter(({ rules }) => 'eslint/no-restricted-globals' in rules)
  .flatMap(({ files }) => files.map((glob) => glob.replace('/**', '')));

/** The output of the linter for the same lines in every pure folder and in another one. */
let output = '';
const root = temporaryFolder();
beforeAll(async () => {
  await copyFile(path.join(REPOSITORY, '.oxlintrc.json'), path.join(root, '.oxlintrc.json'));
  for (const folder of [...pure, 'lib/table']) {
    await mkdir(path.join(root, folder), { recursive: true });
    await writeFile(path.join(root, folder, 'impure.ts'), `${impure.map(({ code }) => code).join('\n')}\n`);
  }
  const lint = promisify(execFile)(path.join(REPOSITORY, 'node_modules/.bin/oxlint'), ['-f', 'unix', 'lib', 'cli'], {
    cwd: root,
  });
  output = await lint.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
});

describe('the linter', () => {
  test.each(impure)('the linter finds $name in every folder without I/O', ({ code, printed }) => {
    const line = impure.findIndex((one) => one.code === code) + 1;
    const found = pure.filter((folder) =>
      new RegExp(`^${folder}/impure\\.ts:${line}:\\d+: ${printed}`, 'm').test(output),
    );
    expect(found).toEqual(pure);
  });

  test('every folder that decides without I/O is in the list', () => {
    expect(pure).toEqual(
      expect.arrayContaining(['lib/allocator', 'lib/leases', 'lib/range', 'lib/repair', 'lib/endpoints']),
    );
  });

  test('the linter allows the clock, random numbers and I/O in other folders', () => {
    expect(output).not.toContain('lib/table/impure.ts');
  });
});
