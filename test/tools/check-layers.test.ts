import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { temporaryFolder } from '../support/temporary-folder.ts';

const repository = path.join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

async function write(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  }
}

/** Returns the exit code and the output of the check for a tree with these files. */
async function checkLayers(files: Readonly<Record<string, string>>): Promise<{ code: number; text: string }> {
  const root = temporaryFolder();
  try {
    await symlink(path.join(repository, 'node_modules'), path.join(root, 'node_modules'));
    await write(root, files);
    const { stdout } = await run(process.execPath, ['tools/check-layers.mjs', root], { cwd: repository });
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

const violations = [
  {
    name: 'an arrow that goes up',
    files: { 'lib/repair/compare.ts': "import type { pass } from '../loops/pass.ts';\nexport type P = typeof pass;\n" },
    printed: 'arrows-of-lib-repair: lib/repair/compare.ts → lib/loops/pass.ts',
  },
  {
    name: 'a client in a loop',
    files: { 'lib/loops/shortcut.ts': "import { Agent } from 'node:https';\nexport const agent = new Agent();\n" },
    printed: 'http-only-in-kubernetes: lib/loops/shortcut.ts',
  },
  {
    name: 'the code that runs the plugins of a kubeconfig in a function',
    files: {
      'functions/shortcut.ts': "import { KubeConfig } from '@kubernetes/client-node';\nexport const k = KubeConfig;\n",
    },
    printed: 'kubernetes-client-only-in-local: functions/shortcut.ts',
  },
  {
    name: 'an SDK that is only named as a type',
    files: {
      'lib/dispatch/table.ts': "import type { DynamoDB } from '@aws-sdk/client-dynamodb';\nexport type T = DynamoDB;\n",
    },
    printed: 'aws-sdk-only-in-its-adapters: lib/dispatch/table.ts',
  },
  {
    name: 'a builtin of Node in a pure folder',
    files: { 'lib/endpoints/disk.ts': "import fs from 'node:fs';\nexport const read = fs.readFileSync;\n" },
    printed: 'pure-imports-no-node-builtin: lib/endpoints/disk.ts → fs',
  },
  {
    name: 'a package that does more than compute in a pure folder',
    files: { 'lib/cluster/colour.ts': "import knip from 'knip';\nexport const k = knip;\n" },
    printed: 'pure-imports-only-what-computes: lib/cluster/colour.ts',
  },
  {
    name: 'a cycle inside one folder',
    files: {
      'lib/table/a.ts': "import { b } from './b.ts';\nexport const a = () => b;\n",
      'lib/table/b.ts': "import { a } from './a.ts';\nexport const b = () => a;\n",
    },
    printed: 'no-cycles: lib/table/',
  },
  {
    name: 'a folder without an arrow',
    files: {
      'lib/misc/util.ts': 'export const one = 1;\n',
      'functions/use.ts': "import { one } from '../lib/misc/util.ts';\nexport const two = one + one;\n",
    },
    printed: 'folder-without-arrows: functions/use.ts → lib/misc/util.ts',
  },
  {
    name: 'an import of what is not there',
    files: { 'lib/kubernetes/gone.ts': "import { gone } from './away.ts';\nexport const g = gone;\n" },
    printed: 'imports-resolve: lib/kubernetes/gone.ts → ./away.ts',
  },
];

describe('check-layers', () => {
  test('check-layers allows imports that go down', async () => {
    expect(await checkLayers(innocent)).toEqual({ code: 0, text: 'layers: 2 files, 1 imports, no violation\n' });
  });

  test('check-layers fails for a tree without modules', async () => {
    const { code, text } = await checkLayers({ 'lib/README.md': 'nothing here\n' });
    expect(text).toContain('saw no imports');
    expect(code).toBe(1);
  });

  describe('a tree with every violation', () => {
    let result = { code: 0, text: '' };
    beforeAll(async () => {
      result = await checkLayers(Object.assign({}, innocent, ...violations.map(({ files }) => files)));
    });

    test.each(violations)('check-layers finds $name', ({ printed }) => {
      expect(result.code).toBe(1);
      expect(result.text).toContain(printed);
    });
  });
});
