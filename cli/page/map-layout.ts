import { addressOf, formatAddress, formatIPv4, parseIPv4, parseIPv6 } from '../../lib/allocator/ip-address.ts';
import { CELL_STATES, type CellState, type RangeMap } from '../../lib/status/cluster-status.ts';

/** How a cell is drawn: one of the states, with `U` of a bucket in four levels. */
export type CellLook = CellState | 'U1' | 'U2' | 'U3' | 'U4';

export interface MapLayout {
  readonly columns: number;
  readonly rows: number;
  /** Commands of an SVG path in which a cell is 1 by 1 and a run of equal cells is one stroke, by look. */
  readonly strokes: ReadonlyMap<CellLook, string>;
  readonly counts: ReadonlyMap<CellLook, number>;
  /** Labels of evenly spaced rows: their first items. */
  readonly rowLabels: readonly string[];
}

const MOST_LABELS = 8;
const LEAST_ROWS_A_LABEL = 2;

export function layoutOf(map: RangeMap): MapLayout {
  const texts = itemTexts(map.first);
  const columns = columnsFor(map, texts);
  const rows = Math.ceil(map.cells.length / columns);
  const strokes = new Map<CellLook, string>();
  const counts = new Map<CellLook, number>();
  for (const run of runsOf(map, columns)) {
    const stroke = `M${run.from % columns} ${Math.floor(run.from / columns)}h${run.length}`;
    strokes.set(run.look, (strokes.get(run.look) ?? '') + stroke);
    counts.set(run.look, (counts.get(run.look) ?? 0) + run.length);
  }
  return { columns, rows, strokes, counts, rowLabels: rowLabels(map, texts, columns, rows) };
}

/** Rows begin at round addresses, and at hundreds of ports. */
function columnsFor({ cells, itemsPerCell }: RangeMap, { kind }: ItemTexts): number {
  if (kind === 'port' && itemsPerCell === 1 && cells.length > 128) return cells.length > 500 ? 100 : 50;
  if (cells.length <= 64) return 16;
  return cells.length <= 1024 ? 32 : 64;
}

interface Run {
  readonly look: CellLook;
  readonly from: number;
  readonly length: number;
}

function runsOf(map: RangeMap, columns: number): Run[] {
  const runs: Run[] = [];
  let from = 0;
  for (let at = 1; at <= map.cells.length; at++) {
    const look = lookOf(map, from);
    if (at < map.cells.length && at % columns !== 0 && lookOf(map, at) === look) continue;
    runs.push({ look, from, length: at - from });
    from = at;
  }
  return runs;
}

function lookOf({ cells, fill, itemsPerCell }: RangeMap, index: number): CellLook {
  const letter = cells.charAt(index);
  // Of a later version: shown as what it is not, free or in use, would mislead.
  if (!isState(letter)) return 'X';
  if (letter !== 'U' || fill === undefined) return letter;
  const level = Math.ceil((4 * (fill[index] ?? 0)) / itemsPerCell);
  return (['U1', 'U1', 'U2', 'U3'] as const)[level] ?? 'U4';
}

function isState(letter: string): letter is CellState {
  return Object.hasOwn(CELL_STATES, letter);
}

/** Evenly spaced, or only that of the first row. */
function rowLabels(map: RangeMap, texts: ItemTexts, columns: number, rows: number): string[] {
  let step = Math.max(1, rows);
  for (let divisor = step; divisor >= 1; divisor--) {
    if (rows % divisor === 0 && divisor >= LEAST_ROWS_A_LABEL && rows / divisor <= MOST_LABELS) step = divisor;
  }
  return Array.from({ length: rows / step || 0 }, (_, index) =>
    shortened(texts.at(index * step * columns * map.itemsPerCell), texts.kind, map.cells.length * map.itemsPerCell),
  );
}

/** The end of an address: the beginning is that of the range. */
function shortened(text: string, kind: ItemTexts['kind'], items: number): string {
  if (kind === 'port') return text;
  if (kind === 'ipv4')
    return items > 65_536
      ? text
      : `.${text
          .split('.')
          .slice(items > 256 ? -2 : -1)
          .join('.')}`;
  return text.endsWith('::') ? '::' : `:${text.split(':').at(-1)}`;
}

/** The items of a range by number: 0 is its first. */
export interface ItemTexts {
  /** As a number in hexadecimal, for the page's script. */
  readonly base: string;
  readonly kind: 'ipv4' | 'ipv6' | 'port';
  at(index: number): string;
}

/** Of a range whose first item is `first`: `10.0.0.0`, `fd00::`, `30000`. */
export function itemTexts(first: string): ItemTexts {
  const ipv4 = parseIPv4(first);
  if (ipv4 !== undefined) return { base: hex(ipv4), kind: 'ipv4', at: (index) => formatIPv4(ipv4 + index) };
  const ipv6 = parseIPv6(first);
  if (ipv6 !== undefined) {
    return { base: hex(ipv6), kind: 'ipv6', at: (index) => formatAddress(addressOf(ipv6 + BigInt(index))) };
  }
  const port = Number.parseInt(first, 10) || 0;
  return { base: hex(port), kind: 'port', at: (index) => String(port + index) };
}

function hex(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
