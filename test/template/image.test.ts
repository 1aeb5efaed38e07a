import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';

test('the steps of the Dockerfile work in a clean folder, and the command of the image prints its help', () => {
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const script = join(REPOSITORY, 'test/template/image-steps.sh');

  expect(execFileSync('bash', [script], { env: { ...process.env, PATH }, encoding: 'utf8' })).toContain('Usage: kbctl');
});
