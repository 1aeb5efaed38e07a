import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { actor } from '../../cli/cli.ts';
import { candidatesFor, SCRIPTS } from '../../cli/commands/completion.ts';
import { program } from '../../cli/program.ts';
import { callKbctl } from '../support/kbctl-in-process.ts';

const terminal = { in: process.stdin, out: process.stdout, err: process.stderr };
const unused = { terminal, ended: new AbortController().signal };
const kbctl = program(actor({ ...unused, nowMs: () => 0, exit: () => undefined }));

const wordsAfter = (...typed: string[]) => candidatesFor(kbctl, typed).words.map(({ word }) => word);

describe('completion', () => {
  test.each<[string, string[], string[]]>([
    ['a command', ['clu'], ['cluster']],
    ['a subcommand', ['get', 'f'], ['findings']],
    ['an option behind a singular form', ['get', 'lease', '--wat'], ['--watch']],
    ['an option of the command', ['logs-query', '--fa'], ['--failures']],
    ['an option of all commands', ['status', 'prod', '--tab'], ['--table']],
    ['the value of an option', ['status', '-o', 'ya'], ['yaml']],
    ['the operand of a choice', ['completion', 'f'], ['fish']],
    ['no command of its own', ['_'], []],
    ['nothing behind an option that takes any text', ['status', '--table', ''], []],
  ])('offers %s', (_, typed, words) => {
    expect(wordsAfter(...typed)).toEqual(words);
  });

  test('offers each word with one line about it, so that a shell reads no word in it', () => {
    const described = [[''], ['get', ''], ['cluster', '']].flatMap((typed) => candidatesFor(kbctl, typed).words);
    expect(described.length).toBeGreaterThan(20);
    expect(described.filter(({ description }) => description.includes('\n'))).toEqual([]);
  });

  test('"pau" in bash completes to "pause" only', () => {
    const kbctlMjs = join(import.meta.dirname, '../../cli/kbctl.mjs');
    const shell = `kbctl() { "${process.execPath}" --disable-warning=ExperimentalWarning "${kbctlMjs}" "$@"; }
${SCRIPTS.bash}
COMP_WORDS=(kbctl pau) COMP_CWORD=1
_kbctl
printf '[%s]' "\${COMPREPLY[@]}"`;
    expect(execFileSync('bash', ['-c', shell], { encoding: 'utf8' })).toBe('[pause]');
  });

  test.each<[string, boolean, string[]]>([
    ['where one is wanted', true, ['status', '']],
    ['behind options and their values', true, ['--table', 'x', 'status', '-o', 'json', 'p']],
    ['not where an option is typed', false, ['status', '--']],
    ['not behind the only one', false, ['status', 'prod-eu-1', '']],
  ])('offers clusters %s', (_, clusters, typed) => {
    expect(candidatesFor(kbctl, typed).clusters).toBe(clusters);
  });
});

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
  const named = leaves(kbctl)
    .filter((command) => !command.name().startsWith('_'))
    .map((command) => [`${command.parent?.name()} ${command.name()}`, command] as const);

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
