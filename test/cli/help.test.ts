import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { actor } from '../../cli/cli.ts';
import { program } from '../../cli/program.ts';
import { callKbctl } from '../support/kbctl-in-process.ts';

const terminal = { in: process.stdin, out: process.stdout, err: process.stderr };
const unused = { terminal, ended: new AbortController().signal };
const kbctl = program(actor({ ...unused, nowMs: () => 0, sleep: async () => {}, exit: () => undefined }));

describe('an unknown command', () => {
  test.each([
    [['delete', 'cluster'], /; see kbctl cluster --help$/m],
    [['relese', 'ip'], /^error: unknown command 'relese'; commands: /],
    [['get', 'finding s'], /^error: unknown command 'finding s'; did you mean findings\?/],
    [['describe', 'prod-eu-1'], /; use kbctl status CLUSTER, kbctl show ip\|port CLUSTER VALUE$/m],
    [['get', 'clusters'], /; use kbctl cluster get$/m],
    [['deregister', '--last-on'], /^error: unknown option '--last-on'\n(?!.*did you mean)/i],
  ])('%j is answered with a command that changes nothing, or with all of them', async (words, stderr) => {
    const { ran } = await callKbctl(words, { cwd: '.', env: {} });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(stderr) });
  });
});

describe('the help', () => {
  const leaves = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
  const named = leaves(kbctl).map((command) => [`${command.parent?.name()} ${command.name()}`, command] as const);

  test.each(named)('the help of %s describes it and shows an example', (_, command) => {
    let help = '';
    const writeOut = (text: string) => {
      help += text;
    };
    command.configureOutput({ writeOut, getOutHasColors: () => false }).outputHelp();
    expect(command.description()).toMatch(/^[A-Z][^\n]{10,}/);
    expect(help).toMatch(/\nExamples:\n {2}\S/);
    // The help wraps it to the width of the terminal.
    expect(command.description()).not.toMatch(/\S\n\S/);
  });
});
