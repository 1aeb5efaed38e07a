import { expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { actor } from '../../cli/cli.ts';
import { calledAs } from '../../cli/commands/run.ts';
import { program } from '../../cli/program.ts';
import { callKbctl } from '../support/kbctl-in-process.ts';

const terminal = { in: process.stdin, out: process.stdout, err: process.stderr };
const unused = { terminal, ended: new AbortController().signal };
const kbctl = program(actor({ ...unused, nowMs: () => 0, sleep: async () => {}, exit: () => undefined }));

test('an unknown command is a usage error, which suggests the most similar command', async () => {
  const ran = await callKbctl(['statu'], { cwd: '.', env: {} });
  const stderr = expect.stringMatching(/unknown command 'statu'\n\(Did you mean status\?\)/);
  expect(ran).toMatchObject({ code: 2, stderr });
});

test.each([
  ['stat', 'status\n'],
  ['cluster ta', 'take-over\n'],
  ['get holds --kube', '--kubeconfig\n'],
  ['status -o j', 'json\n'],
  ['completion z', 'zsh\n'],
  ['cluster apply -f ', ''],
  ['status --data /none ', ''],
])('the completion of a shell offers each command, option or value that completes "%s"', async (line, printed) => {
  const ran = await callKbctl(['completion', 'bash', '--', ...line.split(' ')], { cwd: '.', env: {} });
  expect(ran).toEqual({ code: 0, stdout: printed, stderr: '' });
});

const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
const named = leaves(kbctl).map((command) => [`${command.parent?.name()} ${command.name()}`, command] as const);

test.each(named)('the help of %s contains its description', (_, command) => {
  expect(command.description()).toMatch(/^[A-Z][^\n]{10,}/);
  // The help wraps the description to the width of the terminal.
  expect(command.description()).not.toMatch(/\S\n\S/);
});

test.each([
  { by: 'npm start or node', script: '/src/cli/kbctl.mjs', as: 'node cli/kbctl.mjs' },
  {
    by: 'node in a clone of the repository in another folder',
    script: '/my clone/cli/kbctl.mjs',
    as: "node '../my clone/cli/kbctl.mjs'",
  },
  { by: 'its name', script: '/usr/local/bin/kbctl', as: 'kbctl' },
])('if kbctl was run by $by, messages print the command as $as', ({ script, as }) => {
  expect(calledAs(script, '/src')).toBe(as);
});
