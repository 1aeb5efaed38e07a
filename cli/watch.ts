import type { Command } from 'commander';
import { TableError } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './errors.ts';
import { startAgain } from './terminal.ts';

const EVERY_MS = 5_000;

export interface WatchOptions {
  readonly watch?: boolean;
}

export function withWatchOption(command: Command): Command {
  return command.option('-w, --watch', 'show it again every 5 seconds, until Ctrl-C or --timeout');
}

/** Calls `show` once. With `--watch`, calls it every few seconds until the command ends, even if the table does not answer. */
export async function watched(cli: Cli, { watch }: WatchOptions, show: () => Promise<ExitCode>): Promise<ExitCode> {
  let code = await show();
  while (watch) {
    await cli.sleep(EVERY_MS, cli.signal).catch(() => undefined);
    if (cli.signal.aborted) return cli.ended.aborted ? EXIT.interrupted : code;
    startAgain(cli.output.terminal.out);
    code = await show().catch((error: unknown) => {
      if (cli.signal.aborted) return code;
      if (!(error instanceof TableError)) throw error;
      cli.output.say(`The table does not answer, retrying: ${error.message}`);
      return EXIT.table;
    });
  }
  return code;
}
