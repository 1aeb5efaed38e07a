import type { Command, Option } from 'commander';

export interface Candidates {
  /** Words that may come next, with what they are. */
  readonly words: readonly { readonly word: string; readonly description: string }[];
  /** The name of a cluster may come next, too. */
  readonly clusters: boolean;
}

/**
 * What may stand where the last of `words` is being typed. It is worked out from the commands themselves, so that none
 * is forgotten.
 */
export function candidatesFor(root: Command, words: readonly string[]): Candidates {
  const typed = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const { command, operands, pending } = walk(root, typed);
  if (pending !== undefined) return only(choicesOf(pending), current);
  if (current.startsWith('-')) return only(optionsOf(command), current);
  const argument = command.registeredArguments[Math.min(operands, command.registeredArguments.length - 1)];
  const isOpen = argument !== undefined && (operands < command.registeredArguments.length || argument.variadic);
  const subcommands = command.commands
    .filter((subcommand) => !subcommand.name().startsWith('_'))
    .map((subcommand) => ({ word: subcommand.name(), description: subcommand.summary() }));
  const choices = (isOpen ? (argument.argChoices ?? []) : []).map((word) => ({ word, description: '' }));
  return { ...only([...subcommands, ...choices], current), clusters: isOpen && argument.name() === 'cluster' };
}

interface Walked {
  readonly command: Command;
  /** How many operands of it were typed. */
  readonly operands: number;
  /** The option whose value comes next. */
  readonly pending?: Option;
}

function walk(root: Command, typed: readonly string[]): Walked {
  let command = root;
  let operands = 0;
  let pending: Option | undefined;
  for (const word of typed) {
    if (pending !== undefined) {
      pending = undefined;
      continue;
    }
    const option = allOptions(command).find(({ short, long }) => word === short || word === long);
    const subcommand = operands === 0 ? command.commands.find((one) => one.name() === word) : undefined;
    if (option !== undefined) pending = takesValue(option) ? option : undefined;
    else if (subcommand !== undefined) command = subcommand;
    else if (!word.startsWith('-')) operands += 1;
  }
  return { command, operands, ...(pending !== undefined && { pending }) };
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function allOptions(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent === null ? [] : allOptions(command.parent))].filter(
    ({ hidden }) => !hidden,
  );
}

function optionsOf(command: Command) {
  return allOptions(command).map(({ long, short, description }) => ({ word: long ?? short ?? '', description }));
}

function choicesOf({ argChoices = [] }: Option) {
  return argChoices.map((word) => ({ word, description: '' }));
}

function only(words: Candidates['words'], beginning: string): Candidates {
  return { words: words.filter(({ word }) => word.startsWith(beginning)), clusters: false };
}
