import { type Command, CommanderError } from 'commander';
import { nearestName } from '../lib/cluster/values.ts';
import { describeError } from '../lib/telemetry/telemetry.ts';
import { actor, type Surroundings } from './cli.ts';
import { EXIT, type ExitCode, exitCodeOf } from './errors.ts';
import { program } from './program.ts';
import { type OutStream, styled, type Terminal, writeData, writeLines } from './terminal.ts';

/** Runs one command line, and prints an error to `terminal.err`. */
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

/** Makes every command throw instead of ending the process, and write to the terminal. */
function settle(command: Command, terminal: Terminal): void {
  const { out, err } = terminal;
  command.exitOverride().configureOutput({
    writeOut: (text) => writeData(out, text),
    writeErr: (text) => writeData(err, text),
    outputError: (text, write) => write(withSuggestion(text, command)),
    getOutHelpWidth: () => (out.isTTY ? (out.columns ?? 80) : 80),
    getErrHelpWidth: () => (err.isTTY ? (err.columns ?? 80) : 80),
  });
  for (const subcommand of command.commands) settle(subcommand, terminal);
}

/** Commands that change nothing: only these are suggested. */
const SAFE = new Set('status get show explain doctor page leases ranges runs findings holds'.split(' '));

/** What users of kubectl type, and the hint about the command here. */
const KUBECTL_HABITS: Readonly<Record<string, string>> = {
  apply: 'use kbctl cluster apply -f FILE',
  cluster: 'use kbctl cluster get',
  clusters: 'use kbctl cluster get',
  // It removes a registration: the help describes it first.
  delete: 'see kbctl cluster --help',
  describe: 'use kbctl status CLUSTER, kbctl show ip|port CLUSTER VALUE',
  diff: 'use kbctl cluster apply -f FILE --dry-run',
  list: 'use kbctl cluster get',
};

/** Adds the nearest safe command to the error about an unknown one, or lists the commands. */
function withSuggestion(text: string, { commands }: Command): string {
  const [, word] = /^error: unknown command '([^']*)'/.exec(text) ?? [];
  if (word === undefined) return text;
  const names = commands.map((command) => command.name());
  const habit = Object.hasOwn(KUBECTL_HABITS, word) ? KUBECTL_HABITS[word] : undefined;
  const nearest = nearestName(
    word,
    names.filter((name) => SAFE.has(name)),
  );
  const hint =
    habit !== undefined ? habit : nearest !== undefined ? `did you mean ${nearest}?` : `commands: ${names.join(', ')}`;
  return `${text.trimEnd()}; ${hint}\n`;
}

function reportError(error: unknown, stream: OutStream, debug: boolean): ExitCode {
  const code = exitCodeOf(error);
  // The message of an error that the user can resolve is complete.
  const { message } = describeError(code !== undefined && error instanceof Error ? new Error(error.message) : error);
  const [first = '', ...others] = message.split('\n');
  // Indented, so that no line of a message looks like a line of kbctl.
  writeLines(stream, [
    `${styled(stream, 'red', 'error:')} ${first}`,
    ...others.map((line) => line.replace(/^(?! )/, '  ')),
  ]);
  if (error instanceof Error && (debug || code === undefined)) writeLines(stream, String(error.stack).split('\n'));
  return code ?? EXIT.findings;
}
