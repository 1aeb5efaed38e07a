import { createInterface } from 'node:readline';
import type { Cli } from './cli.ts';
import { usageError } from './errors.ts';
import { writePrompt } from './terminal.ts';

export interface Confirming {
  /** Said beforehand. */
  readonly yes?: boolean;
}

/**
 * Asks on a terminal; anything but yes is no. Elsewhere nobody can be asked, so that it has to be said beforehand.
 * @throws CliError where that was not done.
 */
export async function confirmed(cli: Cli, question: string, { yes = false }: Confirming): Promise<boolean> {
  if (yes) return true;
  const { in: stdin, err } = cli.output.terminal;
  if (!stdin.isTTY || !err.isTTY) {
    throw usageError(`${question} Where nobody can be asked, say so with --yes. Nothing was changed.`);
  }
  writePrompt(err, `${question} [y/N]`);
  const answer = await firstLine(stdin, cli.signal);
  cli.signal.throwIfAborted();
  if (/^\s*y(es)?\s*$/i.test(answer)) return true;
  cli.output.say('Nothing was changed.');
  return false;
}

/** Empty when the input ends before. */
async function firstLine(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  // Not as a terminal: Ctrl-C stays the signal that ends every command.
  const lines = createInterface({ input, terminal: false, signal });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
