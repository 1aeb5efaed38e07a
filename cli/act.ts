import type { Command } from 'commander';
import type { Cli, GlobalOptions } from './cli.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { type OpenTable, openTable } from './open-table.ts';
import { Output } from './output.ts';
import { startProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';

/**
 * What a command does. Its operands are in the order of its arguments; what was left out is undefined. Those of an
 * argument that may be given several times are the last.
 * @returns the exit code; what cannot be done is thrown.
 */
export type Work<Options> = (
  cli: Cli,
  operands: readonly string[],
  options: Options & GlobalOptions,
) => Promise<ExitCode>;

/** Makes the action of a commander command of what it does. */
export type Act = <Options = object>(work: Work<Options>) => (this: Command) => Promise<void>;

export interface Surroundings {
  readonly terminal: Terminal;
  /** Aborts at Ctrl-C. */
  readonly ended: AbortSignal;
  readonly nowMs: () => number;
  /** Takes the exit code of the command that ran. */
  readonly exit: (code: ExitCode) => void;
}

export function actor({ terminal, ended, nowMs, exit }: Surroundings): Act {
  return (work) =>
    async function action(this: Command) {
      const options = this.optsWithGlobals() as Parameters<typeof work>[2];
      const time = options.timeout === undefined ? [] : [AbortSignal.timeout(options.timeout)];
      const signal = AbortSignal.any([ended, ...time]);
      await using table = onceOpened(options, signal);
      const cli: Cli = {
        output: new Output(options.output, terminal),
        options,
        signal,
        ended,
        nowMs,
        openTable: table.open,
        progress: (text) => startProgress(terminal.err, text),
      };
      exit(ended.aborted ? EXIT.interrupted : await work(cli, this.processedArgs.flat(), options));
    };
}

function onceOpened(options: GlobalOptions, signal: AbortSignal) {
  let opening: Promise<OpenTable> | undefined;
  return {
    open: async () => {
      opening ??= openTable(options, signal);
      const opened = await opening;
      return { ...opened, table: opened.tableUntil(signal) };
    },
    [Symbol.asyncDispose]: async () => {
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}
