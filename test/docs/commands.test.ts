import { expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { program } from '../../cli/program.ts';
import { pages } from '../support/console-blocks.ts';
import { readInRepository } from '../support/repository.ts';

const texts = new Map(pages());
for (const page of ['CHANGELOG.md', 'CONTRIBUTING.md']) texts.set(page, readInRepository(page));
const kbctl = program(() => () => Promise.resolve());

test.each([...texts])('page %s names only commands and options that kbctl has', (_page, text) => {
  const lines = [...text.matchAll(/(?<=^|[\s`])(?<!^#.*)kbctl ((?!\.)[a-z-][^`|&;\n]*)(?=[`|&;\n])/gm)].map(
    ([, line = '']) => line,
  );
  expect(lines.filter((line) => !isKnown(line.split(/\s+/)))).toEqual([]);
});

function isKnown(words: readonly string[], command: Command = kbctl): boolean {
  const [word = '', ...others] = words;
  const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
  if (next !== undefined) return isKnown(others, next);
  const takesCommand = command.commands.length > 0 && !word.startsWith('-') && word !== '';
  return !takesCommand && words.every((each) => !each.startsWith('--') || hasOption(command, each));
}

function hasOption(command: Command, word: string): boolean {
  const [name] = word.split('=');
  if (name === '--help' || name === '--version') return true;
  const isHere = command.options.some(({ long }) => long === name);
  return isHere || (command.parent !== null && hasOption(command.parent, word));
}
