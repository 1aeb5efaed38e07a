import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Files that break a rule, each with the beginning of the line that the check prints. */
const VIOLATIONS = [
  [
    'lib/repair/a.ts',
    "import type { b } from '../loops/b.ts'",
    'arrows-of-lib-repair: lib/repair/a.ts → lib/loops/b.ts',
  ],
  ['lib/loops/a.ts', "import 'node:https'", 'http-only-in-kubernetes: lib/loops/a.ts'],
  ['functions/a.ts', "import '@kubernetes/client-node'", 'kubernetes-client-only-in-local: functions/a.ts'],
  [
    'lib/dispatch/a.ts',
    "import type {} from '@aws-sdk/client-dynamodb'",
    'aws-sdk-only-in-its-adapters: lib/dispatch/a.ts',
  ],
  ['lib/range/a.ts', "import 'node:fs'", 'pure-imports-no-node-builtin: lib/range/a.ts → fs'],
  ['lib/cluster/a.ts', "import 'knip'", 'pure-imports-only-what-computes: lib/cluster/a.ts'],
  ['lib/table/a.ts', "import './a.ts'", 'no-cycles: lib/table/a.ts'],
  ['functions/b.ts', "import '../lib/misc/a.ts'", 'folder-without-arrows: functions/b.ts → lib/misc/a.ts'],
  ['lib/kubernetes/a.ts', "import './away.ts'", 'imports-resolve: lib/kubernetes/a.ts → ./away.ts'],
] as const;

test('check-layers reports each import that breaks a rule of .dependency-cruiser.mjs', () => {
  const root = temporaryFolder();
  symlinkSync(path.join(REPOSITORY, 'node_modules'), path.join(root, 'node_modules'));
  for (const [file, text] of [...VIOLATIONS, ['lib/loops/b.ts', 'export const b = 8;'], ['lib/misc/a.ts', '']]) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), `${text}\n`);
  }
  const args = ['tools/check-layers.mjs', root];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: REPOSITORY, encoding: 'utf8' });
  expect(status).toBe(1);
  for (const [, , printed] of VIOLATIONS) expect(stderr).toContain(printed);
});
