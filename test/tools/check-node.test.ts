import { execFile } from 'node:child_process';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const OLD = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } });";

/** Starts the check in a tree whose `node_modules` is a link, with a Node that is too old. `node` writes the Node in `node_modules`. */
async function startCheck(node: (file: string) => Promise<unknown>) {
  const root = temporaryFolder();
  const program = process.platform === 'win32' ? 'node.exe' : 'node';
  const bin = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}/bin`;
  for (const folder of ['tools', 'cli', `installed/${bin}`]) await mkdir(path.join(root, folder), { recursive: true });
  await copyFile(path.join(REPOSITORY, 'tools/check-node.mjs'), path.join(root, 'tools/check-node.mjs'));
  await writeFile(path.join(root, 'cli/main.ts'), '');
  await symlink(path.join(root, 'installed'), path.join(root, 'node_modules'));
  await node(path.join(root, 'installed', bin, program));
  const old = `data:text/javascript,${encodeURIComponent(OLD)}`;
  const args = ['--import', old, '--import', './tools/check-node.mjs', '--eval', 'console.log("ran")'];
  return { running: promisify(execFile)(process.execPath, args, { cwd: root, timeout: 20_000 }) };
}

test.each<[string, (file: string) => Promise<void>]>([
  ['if the Node in node_modules is a link to the running Node', (file) => symlink(process.execPath, file)],
  [
    'after it has started the Node of node_modules once, if that Node is also too old',
    (file) => writeFile(file, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 }),
  ],
])('check-node ends with an error %s', async (_, node) => {
  const { running } = await startCheck(node);
  const stderr = expect.stringContaining('needs Node.js 24 or later');
  await expect(running).rejects.toMatchObject({ code: 1, stderr });
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a %s to the process of check-node also ends the Node.js process that check-node has started',
  async (signal) => {
    const program = `process.on('${signal}', () => { console.log('ended'); process.exit(3); }); console.log('started'); setInterval(() => 0, 1e6);`;
    const script = `#!/bin/sh\nexec '${process.execPath}' --eval "${program}"\n`;
    const { running } = await startCheck((file) => writeFile(file, script, { mode: 0o755 }));
    running.child.stdout?.once('data', () => running.child.kill(signal));
    await expect(running).rejects.toMatchObject({ code: 3, stdout: 'started\nended\n' });
  },
);
