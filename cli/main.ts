import { type Command, CommanderError } from 'commander';
import { describeError } from '../lib/telemetry/describe-error.ts';
import { endOfProcess } from '../local/end-of-process.ts';
import { actor } from './act.ts';
import { exitCodeOf } from './errors.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { program } from './program.ts';
import { plain, styled } from './terminal.ts';
import { endWhenUnread } from './unread-output.ts';

async function main(words: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = EXIT.fine;
  const ended = endOfProcess();
  const command = program(
    actor({
      terminal: { out: process.stdout, err: process.stderr },
      ended,
      nowMs: Date.now,
      exit: (given) => {
        code = given;
      },
    }),
  );
  endByThrowing(command);
  try {
    await command.parseAsync([...words], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    if (ended.aborted) return EXIT.interrupted;
    return told(error, words.includes('--debug'));
  }
}

/** commander asks each of its commands. */
function endByThrowing(command: Command): void {
  command.exitOverride();
  for (const subcommand of command.commands) endByThrowing(subcommand);
}

function told(error: unknown, debug: boolean): ExitCode {
  const code = exitCodeOf(error);
  // What a person can put right says all of it in its own message.
  const { message } = describeError(code !== undefined && error instanceof Error ? new Error(error.message) : error);
  const lines = message.split('\n').map(plain).join('\n');
  process.stderr.write(`${styled(process.stderr, 'red', 'error:')} ${lines}\n`);
  if (error instanceof Error && (debug || code === undefined)) process.stderr.write(`${error.stack}\n`);
  return code ?? EXIT.findings;
}

endWhenUnread(process.stdout);
endWhenUnread(process.stderr);

/** What was written to a pipe is to be read before the process ends: a connection that never came about would keep it. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.write('', () => resolve());
  });
}

const exitCode = await main(process.argv.slice(2));
await Promise.all([written(process.stdout), written(process.stderr)]);
process.exit(exitCode);
