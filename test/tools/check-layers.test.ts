import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);

/** Returns the exit code and the output of the check for a tree with these files. */
async function checkLayers(files: Readonly<Record<string, string>>): Promise<{ code: number; text: string }> {
  const root = temporaryFolder();
  try {
    await symlink(path.join(REPOSITORY, 'node_modules'), path.join(root, 'node_modules'));
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    const { stdout } = await run(process.execPath, ['tools/check-layers.mjs', root], { cwd: REPOSITORY });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, text: stderr };
  }
}

const innocent = {
  'lib/allocator/bitmap.ts': 'export const size: number = 8;\n',
  'lib/loops/pass.ts': "import { size } from '../allocator/bitmap.ts';\nexport const pass = size;\n",
};

/** Each row has the imports of the files that break a rule, and the beginning of the line that the check prints. */
const violations: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  [
    'an import from a higher layer',
    { 'lib/repair/compare.ts': "import type { pass } from '../loops/pass.ts'" },
    'arrows-of-lib-repair: lib/repair/compare.ts → lib/loops/pass.ts',
  ],
  [
    'an HTTP client in a folder other than lib/kubernetes',
    { 'lib/loops/a.ts': "import 'node:https'" },
    'http-only-in-kubernetes: lib/loops/a.ts',
  ],
  [
    'the code that runs the plugins of a kubeconfig in a function',
    { 'functions/a.ts': "import '@kubernetes/client-node'" },
    'kubernetes-client-only-in-local: functions/a.ts',
  ],
  [
    'an SDK from which only a type is imported',
    { 'lib/dispatch/a.ts': "import type { DynamoDB } from '@aws-sdk/client-dynamodb'" },
    'aws-sdk-only-in-its-adapters: lib/dispatch/a.ts',
  ],
  [
    'a builtin of Node in a pure folder',
    { 'lib/range/a.ts': "import 'node:fs'" },
    'pure-imports-no-node-builtin: lib/range/a.ts → fs',
  ],
  [
    'a package with I/O in a pure folder',
    { 'lib/cluster/a.ts': "import 'knip'" },
    'pure-imports-only-what-computes: lib/cluster/a.ts',
  ],
  [
    'a cycle inside one folder',
    { 'lib/table/a.ts': "import './b.ts'", 'lib/table/b.ts': "import './a.ts'" },
    'no-cycles: lib/table/',
  ],
  [
    'a folder that is not in the list of allowed imports',
    { 'lib/misc/a.ts': '', 'functions/b.ts': "import '../lib/misc/a.ts'" },
    'folder-without-arrows: functions/b.ts → lib/misc/a.ts',
  ],
  [
    'an import of a file that does not exist',
    { 'lib/kubernetes/a.ts': "import './away.ts'" },
    'imports-resolve: lib/kubernetes/a.ts → ./away.ts',
  ],
];

describe('check-layers', () => {
  test('check-layers allows an import from a lower layer', async () => {
    expect(await checkLayers(innocent)).toEqual({ code: 0, text: 'layers: 2 files, 1 imports, no violation\n' });
  });

  test('check-layers fails for a tree without modules', async () => {
    const { code, text } = await checkLayers({ 'lib/README.md': 'nothing here\n' });
    expect(text).toContain('saw no imports');
    expect(code).toBe(1);
  });

  describe('a folder tree that violates every rule', () => {
    let result = { code: 0, text: '' };
    beforeAll(async () => {
      result = await checkLayers(Object.assign({}, innocent, ...violations.map(([, files]) => files)));
    });

    test.each(violations)('check-layers finds %s', (_what, _files, printed) => {
      expect(result.code).toBe(1);
      expect(result.text).toContain(printed);
    });
  });
});
