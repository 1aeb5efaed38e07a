import { spawnSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a deployment without credentials ends before it packages the functions', () => {
  const folder = temporaryFolder();
  // The functions are missing, so that packaging them would be another error.
  for (const name of ['deploy', 'lib', 'tools', 'serverless.yml', 'package.json', 'tsconfig.json']) {
    cpSync(join(REPOSITORY, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  const program = join(REPOSITORY, 'node_modules/serverless/bin/serverless.js');
  const env = { PATH: process.env['PATH'], HOME: folder, AWS_EC2_METADATA_DISABLED: 'true' };
  const { status, stdout } = spawnSync(process.execPath, [program, 'deploy'], { cwd: folder, env, encoding: 'utf8' });
  expect(stdout).toContain('AWS provider credentials not found');
  expect(status).toBe(1);
});
