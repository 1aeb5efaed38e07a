import stringWidth from 'string-width';
import type { Health } from './status/cluster-status.ts';
import { escapeControlCharacters, type Style } from './terminal.ts';

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  readonly tone?: (row: Row) => Health | undefined;
  readonly percent?: (row: Row) => number | undefined;
  /** True if the column is narrowed first when the terminal is too narrow. */
  readonly shrinks?: boolean;
  /** True if the column is omitted when the narrowed table is still too wide. The first such column is omitted first. */
  readonly yields?: boolean;
}

export const TONES: Readonly<Record<Health, Style>> = {
  unhealthy: 'red',
  warning: 'yellow',
  unknown: 'dim',
  paused: 'cyan',
  good: 'green',
};

const GAP = 3;
const NARROWEST = 12;

/** @param width the width of the terminal. If absent, the width is unlimited */
export function textTable<Row>(
  shown: readonly Column<Row>[],
  rows: readonly Row[],
  width: number | undefined,
  paint: (style: Style, text: string) => string,
): string[] {
  const cells = rows.map((row) => shown.map(({ text }) => escapeControlCharacters(text(row))));
  const widths = widthsOf(shown, cells, width);
  const yielding = shown.find(({ yields }) => yields);
  if (yielding !== undefined && width !== undefined && totalOf(widths) > width) {
    const kept = shown.filter((column) => column !== yielding);
    return textTable(kept, rows, width, paint);
  }
  const lineOf = (texts: readonly string[], row?: Row) =>
    texts
      .map((text, index) => {
        const cut = cutTo(text, widths[index] ?? text.length);
        const padding = index === texts.length - 1 ? '' : ' '.repeat((widths[index] ?? 0) - stringWidth(cut) + GAP);
        const tone = row === undefined ? undefined : shown[index]?.tone?.(row);
        return (tone === undefined ? cut : paint(TONES[tone], cut)) + padding;
      })
      .join('')
      .trimEnd();
  return [lineOf(shown.map(({ title }) => title)), ...rows.map((row, index) => lineOf(cells[index] ?? [], row))];
}

/** Narrows the columns that may shrink, beginning with the last one, until the table fits the terminal. */
function widthsOf<Row>(
  shown: readonly Column<Row>[],
  cells: readonly (readonly string[])[],
  columns: number | undefined,
): number[] {
  const widths = shown.map(({ title }, index) =>
    cells.reduce((widest, row) => Math.max(widest, stringWidth(row[index] ?? '')), title.length),
  );
  if (columns === undefined) return widths;
  let excess = totalOf(widths) - columns;
  for (let index = widths.length - 1; index >= 0 && excess > 0; index--) {
    if (!shown[index]?.shrinks) continue;
    const width = widths[index] ?? 0;
    const narrowed = Math.max(Math.min(width, NARROWEST), width - excess);
    widths[index] = narrowed;
    excess -= width - narrowed;
  }
  return widths;
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP, -GAP);
}

function cutTo(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let cut = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(cut + segment) > width - 1) break;
    cut += segment;
  }
  return `${cut}…`;
}

/** Wraps a text to `width` columns, with `lead` before the first line. The other lines are indented by the width of `lead`. */
export function wrapped(text: string, width: number, lead = ''): string[] {
  const room = Math.max(20, width - lead.length);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).map(escapeControlCharacters)) {
    if (line !== '' && stringWidth(line) + 1 + stringWidth(word) > room) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((content, index) => (index === 0 ? lead : ' '.repeat(lead.length)) + content);
}
