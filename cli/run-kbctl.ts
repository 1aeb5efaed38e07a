import { type Command, CommanderError } from 'commander';
import { describeError } from '../lib/telemetry/telemetry.ts';
import { actor, type Surroundings } from './cli.ts';
import { EXIT, type ExitCode, exitCodeOf } from './errors.ts';
import { program } from './program.ts';
import { type OutStream, styled, type Terminal, writeData, writeLines } from './terminal.ts';

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

/** Makes every command throw an error instead of ending the process. Help and usage errors are written to `terminal`. */
function settle(command: Command, terminal: Terminal): void {
  const { out, err } = terminal;
  command.exitOverride().configureOutput({
    writeOut: (text) => writeData(out, text),
    writeErr: (text) => writeData(err, text),
    getOutHelpWidth: () => (out.isTTY ? (out.columns ?? 80) : 80),
    getErrHelpWidth: () => (err.isTTY ? (err.columns ?? 80) : 80),
  });
  for (const subcommand of command.commands) settle(subcommand, terminal);
}

function reportError(error: unknown, stream: OutStream, debug: boolean): ExitCode {
  const code = exitCodeOf(error);
  // The message of an error that has an exit code is complete, so the messages of its causes are not printed.
  const { message } = describeError(code !== undefined && error instanceof Error ? new Error(error.message) : error);
  const [first = '', ...others] = message.split('\n');
  // Further lines are indented, so that no line of a message looks like a line of kbctl.
  writeLines(stream, [
    `${styled(stream, 'red', 'error:')} ${first}`,
    ...others.map((line) => line.replace(/^(?! )/, '  ')),
  ]);
  if (error instanceof Error && (debug || code === undefined)) writeLines(stream, String(error.stack).split('\n'));
  return code ?? EXIT.findings;
}
