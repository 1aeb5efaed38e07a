import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { actor } from '../../cli/act.ts';
import { candidatesFor } from '../../cli/completion/candidates.ts';
import { program } from '../../cli/program.ts';

const terminal = { in: process.stdin, out: process.stdout, err: process.stderr };
const unused = { terminal, ended: new AbortController().signal };
const kbctl = program(actor({ ...unused, nowMs: () => 0, exit: () => undefined }));

const wordsAfter = (...typed: string[]) => candidatesFor(kbctl, typed).words.map(({ word }) => word);

describe('completion', () => {
  test.each<[string, string[], string[]]>([
    ['a command', ['clu'], ['cluster']],
    ['a subcommand', ['get', 'f'], ['findings']],
    ['an option of the command', ['logs-query', '--fa'], ['--failures']],
    ['an option of all commands', ['status', 'prod', '--tab'], ['--table']],
    ['the value of an option', ['status', '-o', 'ya'], ['yaml']],
    ['the operand of a choice', ['completion', 'f'], ['fish']],
    ['nothing behind an option that takes any text', ['status', '--table', ''], []],
  ])('offers %s', (_, typed, words) => {
    expect(wordsAfter(...typed)).toEqual(words);
  });

  test('offers every command but its own', () => {
    expect(wordsAfter('')).toEqual(expect.arrayContaining(['cluster', 'status', 'explain', 'completion']));
    expect(wordsAfter('').filter((word) => word.startsWith('_'))).toEqual([]);
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

describe('the help', () => {
  const leaves = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
  const named = leaves(kbctl)
    .filter((command) => !command.name().startsWith('_'))
    .map((command) => [`${command.parent?.name()} ${command.name()}`, command] as const);

  test.each(named)('of %s says what it does and shows an example', (_, command) => {
    let help = '';
    const writeOut = (text: string) => {
      help += text;
    };
    command.configureOutput({ writeOut, getOutHasColors: () => false }).outputHelp();
    expect(command.description()).toMatch(/^[A-Z][^\n]{10,}/);
    expect(help).toMatch(/\nExamples:\n {2}\S/);
  });
});
