import { isoTime } from '../lib/util/values.ts';
import { API_VERSION } from './spec/names.ts';
import { styled, type Terminal, writeData, writeLines, yamlOf } from './terminal.ts';
import { type Column, textTable } from './text-table.ts';

/** `wide`: a table that is never narrowed. `name`: only the names of the clusters, for other commands. */
export const FORMATS = ['table', 'wide', 'name', 'json', 'yaml'] as const;
export type Format = (typeof FORMATS)[number];

interface OutputDocument {
  readonly kind: string;
  readonly [field: string]: unknown;
}

export interface Shown<Row> {
  /** The kind of one item, such as `Lease`. A list is a document of the kind `LeaseList` with the field `items`. */
  readonly kind: string;
  readonly items: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** Returns the fields of a row for JSON and YAML output. The names of these fields never change. Default: the row itself. */
  readonly plain?: (row: Row) => object;
  /** The text that is printed on stderr if the list is empty. */
  readonly none: string;
  /** The number of all items, if `items` may have fewer. */
  readonly total?: number;
  /** The text after `20 of 101` on stderr: how to get all items. */
  readonly rest?: string;
}

const WIDEST_TEXT = 100;

/** Prints data to stdout in the format of `-o`. */
export class Output {
  readonly format: Format;
  readonly terminal: Terminal;

  constructor(format: Format, terminal: Terminal) {
    this.format = format;
    this.terminal = terminal;
  }

  list<Row>({ kind, items, columns, plain, none, total = items.length, rest = '' }: Shown<Row>): void {
    if (this.isForPrograms) this.document({ kind: `${kind}List`, total, items: plain ? items.map(plain) : items });
    else if (items.length === 0) this.say(none);
    else if (this.format === 'name') this.lines(namesIn(plain ? items.map(plain) : items));
    else this.lines(this.table(columns, items));
    if (items.length < total) this.say(`${items.length} of ${total} ${kind.toLowerCase()}s. ${rest}`);
  }

  object(document: OutputDocument, lines: () => readonly string[]): void {
    const { items } = document;
    const names = this.format === 'name' ? namesIn(Array.isArray(items) ? items : [document]) : [];
    if (this.isForPrograms) this.document(document);
    else this.lines(names.length > 0 ? names : lines());
  }

  get isForPrograms(): boolean {
    return this.format === 'json' || this.format === 'yaml';
  }

  document({ kind, ...fields }: OutputDocument): void {
    const whole = plainOf({ apiVersion: API_VERSION, kind, ...fields });
    this.data(this.format === 'yaml' ? yamlOf(whole) : `${JSON.stringify(whole, undefined, 2)}\n`);
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
    return textTable(columns, rows, this.columns, this.paint);
  }

  lines(lines: readonly string[]): void {
    writeLines(this.terminal.out, lines);
  }

  data(data: string | Uint8Array): void {
    writeData(this.terminal.out, data);
  }

  /** Prints a line that is not data to stderr: a note, a warning, the next step. */
  say(line: string): void {
    writeLines(this.terminal.err, [line]);
  }

  paint = (style: Parameters<typeof styled>[1], text: string): string => styled(this.terminal.out, style, text);

  get columns(): number | undefined {
    const { isTTY = false, columns } = this.terminal.out;
    // Some terminals report a width of 0.
    return isTTY && columns !== 0 && this.format !== 'wide' ? columns : undefined;
  }

  /** The width of a paragraph: the width of the terminal, up to a readable length. */
  get textWidth(): number {
    return Math.min(this.columns ?? WIDEST_TEXT, WIDEST_TEXT);
  }
}

/** Returns the names of the clusters in the rows, without duplicates. A row is a cluster, or has a field `cluster`. */
function namesIn(rows: readonly unknown[]): string[] {
  const names = rows.flatMap((row): unknown => {
    const { cluster, name = [] } = Object(row);
    return cluster ?? name;
  });
  return [...new Set(names.map(String))];
}

/** Matches fields that are times, such as `expiresAtMs` and `untilMs`, but not `durationMs`. */
const TIME = /^(.*(?:[aA]t|[uU]ntil))Ms$/;

/** Returns a value for `-o json` and `-o yaml`: without fields `map`, and with `expiresAt` (ISO 8601) for `expiresAtMs`. */
export function plainOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([field, content]: [string, unknown]) => {
      if (content === undefined || field === 'map') return [];
      // The fields in `counts` keep their names.
      if (field === 'counts') return [[field, content]];
      const [, time] = TIME.exec(field) ?? [];
      if (time !== undefined && typeof content === 'number') return [[time, isoTime(content)]];
      return [[field, plainOf(content)]];
    }),
  );
}
