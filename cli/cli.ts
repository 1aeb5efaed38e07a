import type { Command } from 'commander';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { EXIT, type ExitCode } from './errors.ts';
import { measureClock, type OpenTable, openTable, refuseSkew, skewWords, type TableOptions } from './open-table.ts';
import { type Format, Output } from './output.ts';
import { type Progress, startProgress, type Terminal } from './terminal.ts';

/** The options that every command takes. */
export interface GlobalOptions extends TableOptions {
  readonly output: Format;
  /** Of the whole command. */
  readonly timeout?: number;
  readonly debug?: boolean;
}

export interface CommandTable extends OpenTable {
  /** Its calls end with the command. */
  readonly table: KeyValueTable;
}

/** What a command works with. */
export interface Cli {
  readonly output: Output;
  readonly options: GlobalOptions;
  /** What the person named beside options, such as a cluster. */
  readonly operands: readonly string[];
  /** Aborts at Ctrl-C and when `--timeout` is over: every call ends with it. */
  readonly signal: AbortSignal;
  /** Aborts at Ctrl-C alone: for what runs until then. */
  readonly ended: AbortSignal;
  /** The time of the table's clock. Opens the table. */
  readonly nowMs: () => Promise<number>;
  /** The table that the options name, opened once, with its clock measured. @throws CliError, TableError */
  openTable(): Promise<CommandTable>;
  /** The same, to write or end what time decides: a lease, a hold, a withdrawal. @throws CliError by a clock that is wrong. */
  openForWriting(): Promise<CommandTable>;
  /** The same before any reply: its clock is still this host's. */
  openUnmeasured(): Promise<CommandTable>;
  progress(text: string): Progress;
}

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
