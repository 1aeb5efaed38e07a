import type { Command } from 'commander';
import { CLUSTERS } from '../lib/table/clusters.ts';
import { MOST_SKEW_MS, type ServerClock } from '../lib/table/key-value-table.ts';
import { configurationError, EXIT, type ExitCode } from './errors.ts';
import type { OpenTable, TableOptions } from './open-table.ts';
import { type Format, Output } from './output.ts';
import type { Terminal } from './terminal.ts';

export interface GlobalOptions extends TableOptions {
  readonly output: Format;
  readonly timeout?: number;
  readonly debug?: boolean;
}

export interface Cli {
  readonly output: Output;
  readonly options: GlobalOptions;
  readonly operands: readonly string[];
  /** Aborts at Ctrl-C and after `--timeout`. */
  readonly signal: AbortSignal;
  /** Aborts at Ctrl-C only. */
  readonly ended: AbortSignal;
  readonly sleep: Surroundings['sleep'];
  /** Opens the table that the options specify, and measures its clock. @throws CliError, TableError */
  openTable(): Promise<OpenTable>;
  /** Opens the table for writes that depend on the time. @throws CliError if this host's clock is wrong */
  openForWriting(): Promise<OpenTable>;
  /** Opens the table without measuring its clock, and uses the time of this host. */
  openUnmeasured(): Promise<OpenTable>;
}

/** Runs a command. Operands are in the order of the command's arguments; a variadic one is last. @returns the exit code */
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
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly exit: (code: ExitCode) => void;
}

export function actor({ terminal, ended, nowMs: hostNowMs, sleep, exit }: Surroundings): Act {
  return (work) =>
    async function action(this: Command) {
      const options = this.optsWithGlobals() as Parameters<typeof work>[2];
      const timeout = options.timeout === undefined ? [] : [AbortSignal.timeout(options.timeout)];
      const signal = AbortSignal.any([ended, ...timeout]);
      const output = new Output(options.output, terminal);
      const operands: string[] = this.processedArgs.flat();
      await using opener = tableOpener({ options, operands, signal, nowMs: hostNowMs, output });
      const cli: Cli = { ...opener, output, options, operands, signal, ended, sleep };
      exit(ended.aborted ? EXIT.interrupted : await work(cli, operands, options));
    };
}

interface OpenerOptions extends Pick<Cli, 'options' | 'operands' | 'signal' | 'output'>, Pick<Surroundings, 'nowMs'> {}

function tableOpener({ options, operands, signal, nowMs, output }: OpenerOptions) {
  let opening: Promise<OpenTable> | undefined;
  let measuring: Promise<unknown> | undefined;
  let warned = false;
  const openUnmeasured = () => {
    // The AWS SDK and a local table server are loaded only by commands that read a table.
    opening ??= import('./open-table.ts').then(({ openTable }) => openTable(options, operands, signal, nowMs));
    return opening;
  };
  const openMeasured = async () => {
    const opened = await openUnmeasured();
    // Any read measures the clock, because each reply has the table's time.
    measuring ??= opened.table.get(CLUSTERS, '*');
    await measuring;
    return opened;
  };
  return {
    openUnmeasured,
    openTable: async () => {
      const opened = await openMeasured();
      const skew = describeSkew(opened.clock);
      if (skew !== undefined && !warned) output.say(`warning: ${skew}. Times are shown by the table's clock.`);
      warned = true;
      return opened;
    },
    openForWriting: async () => {
      const opened = await openMeasured();
      refuseSkew(opened.clock);
      return opened;
    },
    [Symbol.asyncDispose]: async () => {
      const opened = await opening?.catch(() => undefined);
      await opened?.[Symbol.asyncDispose]();
    },
  };
}

/** Returns a sentence about the difference between the clocks of this host and the table; `undefined` if they agree. */
function describeSkew(clock: ServerClock): string | undefined {
  const aheadMs = clock.skewMs();
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return undefined;
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `The clock of this host is at least ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the table's`;
}

/** @throws CliError if this host's clock is too far off for a write */
export function refuseSkew(clock: ServerClock): void {
  const skew = describeSkew(clock);
  if (skew === undefined) return;
  throw configurationError(
    `${skew}; at most ${MOST_SKEW_MS / 1000} s is accepted. Nothing was written. Correct the clock with chronyd or timedatectl, and run the command again.`,
  );
}
