import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { OpenTable, TableOptions } from './open-table.ts';
import type { Format, Output } from './output.ts';
import type { Progress } from './progress.ts';

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
