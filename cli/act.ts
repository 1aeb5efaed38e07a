import type { Command } from 'commander';
import type { Cli, GlobalOptions } from './cli.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { type OpenTable, openTable } from './open-table.ts';
import { Output } from './output.ts';
import { startProgress } from './progress.ts';
import { measureClock, refuseSkew, skewWords } from './skew.ts';
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
  /** This host's clock. */
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
      const output = new Output(options.output, terminal);
      await using opener = tableOpener({ options, signal, nowMs, output });
      const operands: string[] = this.processedArgs.flat();
      const cli: Cli = {
        output,
        options,
        operands,
        signal,
        ended,
        nowMs: async () => (await opener.openTable()).clock.nowMs(),
        openTable: opener.openTable,
        openForWriting: opener.openForWriting,
        openUnmeasured: opener.openUnmeasured,
        progress: (text) => startProgress(terminal.err, text),
      };
      exit(ended.aborted ? EXIT.interrupted : await work(cli, operands, options));
    };
}

interface Opening extends Pick<Cli, 'options' | 'signal' | 'output'>, Pick<Surroundings, 'nowMs'> {}

/** Opens the table once, and measures its clock once. */
function tableOpener({ options, signal, nowMs, output }: Opening) {
  let opening: Promise<OpenTable> | undefined;
  let measuring: Promise<void> | undefined;
  const openUnmeasured = async () => {
    opening ??= openTable(options, signal, nowMs);
    const opened = await opening;
    return { ...opened, table: opened.tableUntil(signal) };
  };
  const measured = async () => {
    const opened = await openUnmeasured();
    measuring ??= measureClock(opened.table);
    await measuring;
    return opened;
  };
  let warned = false;
  return {
    openUnmeasured,
    openTable: async () => {
      const opened = await measured();
      const words = skewWords(opened.clock);
      if (words !== undefined && !warned) output.say(`warning: ${words}, by which times are shown here.`);
      warned = true;
      return opened;
    },
    openForWriting: async () => {
      const opened = await measured();
      refuseSkew(opened.clock);
      return opened;
    },
    [Symbol.asyncDispose]: async () => {
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}
