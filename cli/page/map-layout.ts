import { parseIPv4, parseIPv6 } from '../../lib/allocator/ip-address.ts';
import { CELL_STATES, type CellState, type RangeMap } from '../status/cluster-status.ts';

/** How a cell is drawn: one of the states, with `U` of a bucket in four levels. */
export type CellLook = CellState | 'U1' | 'U2' | 'U3' | 'U4';

export interface MapLayout {
  readonly columns: number;
  readonly rows: number;
  /** Commands of an SVG path by look: a cell is 1 by 1, and a run of equal cells is one stroke. */
  readonly strokes: ReadonlyMap<CellLook, string>;
  readonly counts: ReadonlyMap<CellLook, number>;
  /** Labels of evenly spaced rows: their first items. */
  readonly rowLabels: readonly string[];
}

const MOST_LABELS = 8;
const LEAST_ROWS_A_LABEL = 2;

export function layoutOf(map: RangeMap): MapLayout {
  const items = itemsFrom(map.first);
  const columns = columnsFor(map, items);
  const rows = Math.ceil(map.cells.length / columns);
  const strokes = new Map<CellLook, string>();
  const counts = new Map<CellLook, number>();
  for (const run of runsOf(map, columns)) {
    const stroke = `M${run.from % columns} ${Math.floor(run.from / columns)}h${run.length}`;
    strokes.set(run.look, (strokes.get(run.look) ?? '') + stroke);
    counts.set(run.look, (counts.get(run.look) ?? 0) + run.length);
  }
  return { columns, rows, strokes, counts, rowLabels: rowLabels(map, items, columns, rows) };
}

/** Rows begin at round addresses, and at hundreds of ports. */
function columnsFor({ cells, itemsPerCell }: RangeMap, { kind }: FirstItem): number {
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
  // A state of a later version: free or in use would be wrong.
  if (!isState(letter)) return 'X';
  if (letter !== 'U' || fill === undefined) return letter;
  const level = Math.ceil((4 * (fill[index] ?? 0)) / itemsPerCell);
  return (['U1', 'U1', 'U2', 'U3'] as const)[level] ?? 'U4';
}

function isState(letter: string): letter is CellState {
  return Object.hasOwn(CELL_STATES, letter);
}

/** Returns evenly spaced labels, or only that of the first row. */
function rowLabels(map: RangeMap, { kind, base }: FirstItem, columns: number, rows: number): string[] {
  let step = Math.max(1, rows);
  for (let divisor = step; divisor >= 1; divisor--) {
    if (rows % divisor === 0 && divisor >= LEAST_ROWS_A_LABEL && rows / divisor <= MOST_LABELS) step = divisor;
  }
  return Array.from({ length: rows / step || 0 }, (_, index) =>
    shortened(
      itemText(kind, base, index * step * columns * map.itemsPerCell),
      kind,
      map.cells.length * map.itemsPerCell,
    ),
  );
}

/** Returns the end of an address: the beginning is that of the range. */
function shortened(text: string, kind: FirstItem['kind'], items: number): string {
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

/** The first item of a range: `itemText` counts from it. */
export interface FirstItem {
  readonly kind: 'ipv4' | 'ipv6' | 'port';
  /** The first item as a hexadecimal number. */
  readonly base: string;
}

/** Returns the first item of a range that begins with `10.0.0.0`, `fd00::` or `30000`. */
export function itemsFrom(first: string): FirstItem {
  const hex = (value: number | bigint) => `0x${value.toString(16)}`;
  const ipv4 = parseIPv4(first);
  if (ipv4 !== undefined) return { kind: 'ipv4', base: hex(ipv4) };
  const ipv6 = parseIPv6(first);
  if (ipv6 !== undefined) return { kind: 'ipv6', base: hex(ipv6) };
  return { kind: 'port', base: hex(Number.parseInt(first, 10) || 0) };
}

/** Returns an item of a range by its number. The page's script contains this function: it uses nothing from outside. */
export function itemText(kind: FirstItem['kind'], base: string, index: number): string {
  const value = BigInt(base) + BigInt(index);
  if (kind === 'port') return String(value);
  if (kind === 'ipv4' || value >> 32n === 0xffffn) {
    return [24n, 16n, 8n, 0n].map((bits) => (value >> bits) & 255n).join('.');
  }
  const digits = value.toString(16).padStart(32, '0');
  const groups = digits.replace(/.{4}/g, (group) => `${Number.parseInt(group, 16).toString(16)}:`).slice(0, -1);
  const [longest] = (groups.match(/\b0(:0)+\b/g) ?? []).sort((one, other) => other.length - one.length);
  if (longest === undefined) return groups;
  return groups.replace(new RegExp(`(^|:)${longest}(:|$)`), '::');
}
