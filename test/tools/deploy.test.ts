import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: string;

beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder, 'tools'));
  copyFileSync(join(import.meta.dirname, '..', '..', 'tools/deploy.mjs'), join(folder, 'tools/deploy.mjs'));
});

/** What is installed under the name "serverless", and prints its arguments. */
function install(name: string): void {
  const installed = join(folder, 'node_modules/serverless');
  mkdirSync(installed, { recursive: true });
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ name, bin: { serverless: 'run.cjs' } }));
  writeFileSync(
    join(installed, 'run.cjs'),
    "console.log('ran', ...process.argv.slice(2), require('node:fs').readFileSync(0, 'utf8')); process.exitCode = 7;",
  );
}

/** With an empty PATH: nothing that is installed globally is used. */
function deploy(...words: string[]): {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  const args = [join(folder, 'tools/deploy.mjs'), ...words];
  return spawnSync(process.execPath, args, { env: { PATH: '' }, encoding: 'utf8', input: '123456' });
}

describe('npm run deploy', () => {
  test('runs the osls of this project with its arguments and its input, such as an MFA code, and ends as that does', () => {
    install('osls');
    expect(deploy('--stage', 'prod')).toMatchObject({ status: 7, stdout: 'ran deploy --stage prod 123456\n' });
  });

  test.each([
    ['the closed original', () => install('serverless'), /is "serverless" and not osls: run "npm ci"/],
    ['nothing', () => {}, /is "missing \(ENOENT\)" and not osls: run "npm ci"/],
  ])('refuses %s in its place', (_, prepare, reason) => {
    prepare();
    expect(deploy()).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(reason) });
  });
});
