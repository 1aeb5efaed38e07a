import type { Plain } from '../lib/spec/written-spec.ts';
import { styled, type Terminal, writeData, writeLines, yamlOf } from './terminal.ts';
import { type Column, textTable } from './text-table.ts';

export const FORMATS = ['table', 'wide', 'json', 'yaml'] as const;
export type Format = (typeof FORMATS)[number];

export type { Plain };

/** What a command has to show, for people and for programs. */
export interface Shown<Row> {
  /** `Lease`: of one item; a list is `LeaseList` with `items`. */
  readonly kind: string;
  readonly items: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** Stable: what is left out is not known, and nothing is renamed. */
  readonly plain: (row: Row) => { readonly [field: string]: Plain | undefined };
  /** What is said on the other stream where there is nothing to show. */
  readonly none: string;
}

export const API_VERSION = 'kbctl/v1';

/** Prints data to stdout as it was asked for. */
export class Output {
  readonly format: Format;
  readonly terminal: Terminal;

  constructor(format: Format, terminal: Terminal) {
    this.format = format;
    this.terminal = terminal;
  }

  /** A list as a table, or as one document. */
  list<Row>({ kind, items, columns, plain, none }: Shown<Row>): void {
    if (this.isForPrograms) this.document({ kind: `${kind}List`, items: items.map(plain) });
    else if (items.length === 0) this.say(none);
    else this.lines(textTable(columns, items, this.#tableOptions()));
  }

  /** One object: its lines for people, or the document. */
  object(
    document: { readonly kind: string; readonly [field: string]: Plain | undefined },
    lines: () => readonly string[],
  ) {
    if (this.isForPrograms) this.document(document);
    else this.lines(lines());
  }

  get isForPrograms(): boolean {
    return this.format === 'json' || this.format === 'yaml';
  }

  document({ kind, ...fields }: { readonly kind: string; readonly [field: string]: Plain | undefined }): void {
    const whole = { apiVersion: API_VERSION, kind, ...fields };
    this.data(this.format === 'yaml' ? yamlOf(whole) : `${JSON.stringify(whole, undefined, 2)}\n`);
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
    return textTable(columns, rows, this.#tableOptions());
  }

  lines(lines: readonly string[]): void {
    writeLines(this.terminal.out, lines);
  }

  /** What programs read, in a form of its own. */
  data(data: string | Uint8Array): void {
    writeData(this.terminal.out, data);
  }

  /** Everything that is not data: progress, notes, what to do next. */
  say(line: string): void {
    writeLines(this.terminal.err, [line]);
  }

  paint = (style: Parameters<typeof styled>[1], text: string): string => styled(this.terminal.out, style, text);

  /** Of the terminal; absent where the output goes elsewhere. */
  get columns(): number | undefined {
    const { isTTY = false, columns } = this.terminal.out;
    // One that does not tell its width says 0.
    return isTTY && columns !== 0 ? columns : undefined;
  }

  #tableOptions() {
    const columns = this.columns;
    return {
      wide: this.format === 'wide',
      paint: this.paint,
      ...(columns !== undefined && this.format !== 'wide' && { columns }),
    };
  }
}
