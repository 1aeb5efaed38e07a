import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode, usageError } from './errors.ts';
import { parseDuration } from './options.ts';
import { clearScreen } from './terminal.ts';

export interface WatchOptions {
  readonly watch?: boolean;
  readonly interval: number;
}

export function withWatchOptions(command: Command): Command {
  return command
    .option('-w, --watch', 'print again and again until Ctrl-C')
    .addOption(
      new Option('--interval <duration>', 'the time between two prints of --watch')
        .argParser(parseDuration)
        .default(2_000, '2s'),
    );
}

/** Prints once, or with --watch until Ctrl-C, which then is success. */
export async function watched(
  cli: Cli,
  { watch, interval }: WatchOptions,
  print: () => Promise<ExitCode>,
): Promise<ExitCode> {
  if (!watch) return print();
  const { output } = cli;
  if (output.isForPrograms) throw usageError('--watch prints tables only: omit it for -o json and -o yaml.');
  const redraws = output.terminal.out.isTTY === true;
  while (!cli.signal.aborted) {
    if (redraws) clearScreen(output.terminal.out);
    else output.lines([`--- ${new Date(await cli.nowMs()).toISOString()}`]);
    try {
      await print();
    } catch (error) {
      if (cli.signal.aborted) break;
      throw error;
    }
    await sleep(interval, undefined, { signal: cli.signal }).catch(() => undefined);
  }
  return EXIT.fine;
}
