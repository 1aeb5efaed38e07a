import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';

test('client-go reads each kubeconfig as verdicts.jsonl states', () => {
  const kubeconfigs = path.join(import.meta.dirname, '../kubeconfigs');
  const verdicts = execFileSync('go', ['run', '-mod=readonly', './kubeconfig-verdicts', kubeconfigs], {
    cwd: path.join(import.meta.dirname, 'control-plane'),
    env: { ...process.env, GOWORK: 'off' },
    encoding: 'utf8',
  });
  expect(verdicts).toBe(readFileSync(path.join(kubeconfigs, 'verdicts.jsonl'), 'utf8'));
});
