import { type Command, CommanderError } from 'commander';
import { describeError } from '../lib/telemetry/describe-error.ts';
import { actor, type Surroundings } from './cli.ts';
import { EXIT, type ExitCode, exitCodeOf } from './errors.ts';
import { program } from './program.ts';
import { type OutStream, styled, type Terminal, writeData, writeLines } from './terminal.ts';

/** Runs one command line, and writes what failed to `terminal.err`. */
export async function runKbctl(words: readonly string[], surroundings: Omit<Surroundings, 'exit'>): Promise<ExitCode> {
  const { terminal, ended } = surroundings;
  let code: ExitCode = EXIT.fine;
  const command = program(
    actor({
      ...surroundings,
      exit: (given) => {
        code = given;
      },
    }),
  );
  settle(command, terminal);
  try {
    await command.parseAsync([...words], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    if (ended.aborted) return EXIT.interrupted;
    return reportError(error, terminal.err, words.includes('--debug'));
  }
}

/** Every command throws instead of ending the process, and writes to the terminal. commander asks each of its commands. */
function settle(command: Command, terminal: Terminal): void {
  const { out, err } = terminal;
  command.exitOverride().configureOutput({
    writeOut: (text) => writeData(out, text),
    writeErr: (text) => writeData(err, text),
    outputError: (text, write) => write(withCommands(text, command)),
    getOutHelpWidth: () => (out.isTTY ? (out.columns ?? 80) : 80),
    getErrHelpWidth: () => (err.isTTY ? (err.columns ?? 80) : 80),
  });
  for (const subcommand of command.commands) settle(subcommand, terminal);
}

/** An unknown command is answered with those that there are: the nearest word may be one that deletes. */
function withCommands(text: string, { commands }: Command): string {
  if (!text.startsWith('error: unknown command')) return text;
  const names = commands.map((command) => command.name()).filter((name) => !name.startsWith('_'));
  return `${text.trimEnd()}; there are ${names.join(', ')}\n`;
}

function reportError(error: unknown, stream: OutStream, debug: boolean): ExitCode {
  const code = exitCodeOf(error);
  // What a person can put right says all of it in its own message.
  const { message } = describeError(code !== undefined && error instanceof Error ? new Error(error.message) : error);
  const [first = '', ...others] = message.split('\n');
  // Indented, so that no line of a message reads as one of ours.
  writeLines(stream, [
    `${styled(stream, 'red', 'error:')} ${first}`,
    ...others.map((line) => line.replace(/^(?! )/, '  ')),
  ]);
  if (error instanceof Error && (debug || code === undefined)) writeLines(stream, String(error.stack).split('\n'));
  return code ?? EXIT.findings;
}
