import type { Command } from 'commander';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { EXIT, type ExitCode } from './errors.ts';
import type { OpenTable, TableOptions } from './open-table.ts';
import { type Format, Output } from './output.ts';
import type { Terminal } from './terminal.ts';

export interface GlobalOptions extends TableOptions {
  readonly output: Format;
  readonly timeout?: number;
  readonly debug?: boolean;
}

export interface CommandTable extends OpenTable {
  readonly table: KeyValueTable;
}

export interface Cli {
  readonly output: Output;
  readonly options: GlobalOptions;
  readonly operands: readonly string[];
  /** Aborts at Ctrl-C and after `--timeout`, and ends every call. */
  readonly signal: AbortSignal;
  /** Aborts at Ctrl-C only. */
  readonly ended: AbortSignal;
  /** Opens the table, and returns the time of its clock. */
  readonly nowMs: () => Promise<number>;
  readonly sleep: Surroundings['sleep'];
  /**
   * Opens the table that the options name, once, and measures its clock.
   * @throws CliError, TableError
   */
  openTable(): Promise<CommandTable>;
  /**
   * Opens the table for writes that depend on the time: a lease, a hold, a withdrawal.
   * @throws CliError if this host's clock is wrong
   */
  openForWriting(): Promise<CommandTable>;
  /** Opens the table without measuring its clock, and uses the time of this host. */
  openUnmeasured(): Promise<CommandTable>;
}

/**
 * The work of one command. Operands are in the order of its arguments; a variadic argument is last. @returns the exit code
 */
export type Work<Options> = (
  cli: Cli,
  operands: readonly string[],
  options: Options & GlobalOptions,
) => Promise<ExitCode>;

export type Act = <Options = object>(work: Work<Options>) => (this: Command) => Promise<void>;

export interface Surroundings {
  readonly terminal: Terminal;
  readonly ended: AbortSignal;
  readonly nowMs: () => number;
  /** Waits; rejects as soon as the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly exit: (code: ExitCode) => void;
}

export function actor({ terminal, ended, nowMs, sleep, exit }: Surroundings): Act {
  return (work) =>
    async function action(this: Command) {
      const options = this.optsWithGlobals() as Parameters<typeof work>[2];
      const timeout = options.timeout === undefined ? [] : [AbortSignal.timeout(options.timeout)];
      const signal = AbortSignal.any([ended, ...timeout]);
      const output = new Output(options.output, terminal);
      const operands: string[] = this.processedArgs.flat();
      await using opener = tableOpener({ options, operands, signal, nowMs, output });
      const cli: Cli = {
        output,
        options,
        operands,
        signal,
        ended,
        nowMs: async () => (await opener.openTable()).clock.nowMs(),
        sleep,
        openTable: opener.openTable,
        openForWriting: opener.openForWriting,
        openUnmeasured: opener.openUnmeasured,
      };
      exit(ended.aborted ? EXIT.interrupted : await work(cli, operands, options));
    };
}

interface OpenerOptions extends Pick<Cli, 'options' | 'operands' | 'signal' | 'output'>, Pick<Surroundings, 'nowMs'> {}

function tableOpener({ options, operands, signal, nowMs, output }: OpenerOptions) {
  // The AWS SDK and a local table server are loaded only by commands that read a table.
  const tables = () => import('./open-table.ts');
  let opening: Promise<OpenTable> | undefined;
  let measuring: Promise<void> | undefined;
  let warned = false;
  const openUnmeasured = async () => {
    opening ??= tables().then(({ openTable }) => openTable(options, operands, signal, nowMs));
    const opened = await opening;
    return { ...opened, table: opened.tableUntil(signal) };
  };
  const openMeasured = async () => {
    const opened = await openUnmeasured();
    const { measureClock, ...clocks } = await tables();
    measuring ??= measureClock(opened.table);
    await measuring;
    return { opened, clocks };
  };
  return {
    openUnmeasured,
    openTable: async () => {
      const { opened, clocks } = await openMeasured();
      const skew = clocks.describeSkew(opened.clock);
      if (skew !== undefined && !warned) output.say(`warning: ${skew}. Times are shown by the table's clock.`);
      warned = true;
      return opened;
    },
    openForWriting: async () => {
      const { opened, clocks } = await openMeasured();
      clocks.refuseSkew(opened.clock);
      return opened;
    },
    [Symbol.asyncDispose]: async () => {
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}
