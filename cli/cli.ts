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

/** What a command works with. */
export interface Cli {
  readonly output: Output;
  readonly options: GlobalOptions;
  /** Aborts at Ctrl-C and when `--timeout` is over: every call ends with it. */
  readonly signal: AbortSignal;
  /** Aborts at Ctrl-C alone: for what runs until then. */
  readonly ended: AbortSignal;
  readonly nowMs: () => number;
  /** The table that the options name, opened once; what says why there is none is thrown. */
  openTable(): Promise<OpenTable & { readonly table: KeyValueTable }>;
  progress(text: string): Progress;
}
