import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import type { CellState, RangeMap, RangeStatus } from '../status/cluster-status.ts';
import { amount } from '../status/columns.ts';
import { clipped, type Html, html } from './html.ts';

export type CellLook = CellState | 'U1' | 'U2' | 'U3' | 'U4';

const CELL = html`x=".06" y=".06" width=".88" height=".88" rx=".14"`;
const level = (height: number) =>
  html`<rect class="F" ${CELL}/><rect class="U" x=".06" y="${0.94 - height}" width=".88" height="${height}" rx=".1"/>`;

/**
 * The cell styles, each with its text in the legend and a drawing one unit wide and high. Each state has a style, most with a
 * mark for colour-blind readers. Four more styles show how many of a cell's items are in use.
 */
export const LOOKS: Readonly<Record<CellLook, readonly [text: string, drawing: Html]>> = {
  D: ['duplicate', html`<rect class="D" ${CELL}/><path class="mark" d="M.28 .28L.72 .72M.72 .28L.28 .72"/>`],
  L: ['leaking', html`<rect class="L" ${CELL}/><path class="mark" d="M.1 .9L.9 .1"/>`],
  H: ['held', html`<rect class="H" ${CELL}/><circle class="dot" cx=".5" cy=".5" r=".17"/>`],
  U: ['in use', html`<rect class="U" ${CELL}/>`],
  U4: ['more than ¾ in use', level(0.88)],
  U3: ['up to ¾ in use', level(0.66)],
  U2: ['up to ½ in use', level(0.44)],
  U1: ['up to ¼ in use', level(0.22)],
  R: ['free, reserved band', html`<rect class="F" ${CELL}/><circle class="R" cx=".5" cy=".5" r=".13"/>`],
  F: ['free', html`<rect class="F" ${CELL}/>`],
  X: ['not usable', html`<path class="X" d="M.3 .7L.7 .3"/>`],
};

/** The SVG pattern of each cell style. The cells of all maps of a page refer to these patterns. */
export const PATTERNS: Html = html`<svg class="sr" aria-hidden="true"><defs>${Object.entries(LOOKS).map(
  ([look, [, drawing]]) =>
    html`<pattern id="p${look}" patternUnits="userSpaceOnUse" width="1" height="1">${drawing}</pattern>`,
)}</defs></svg>`;

const CELL_PIXELS = 15;

export function rangeMap(range: RangeStatus, map: RangeMap): Html {
  const columns = map.cells.length > 256 ? 64 : 32;
  const runs = runsOf(map, columns);
  const rects = runs.map(({ look, from, length }) => {
    const place = html`x="${from % columns}" y="${Math.floor(from / columns)}" width="${length}" height="1"`;
    return html`<rect ${place} fill="url(#p${look})"><title>${itemsOf(map, from, length)}: ${LOOKS[look][0]}</title></rect>`;
  });
  const title = `${clipped(range.title, 80)} ${clipped(range.range, 80)}`;
  const use = `${range.used} of ${amount(range.capacity)} in use`;
  const rows = Math.ceil(map.cells.length / columns);
  return html`<figure><h3>${title}</h3>
<svg role="img" aria-label="Map of the ${title}: ${use}" viewBox="0 0 ${columns} ${rows}" width="${columns * CELL_PIXELS}">${rects}</svg>
<figcaption>${legend(runs, map, range)}</figcaption></figure>`;
}

interface Run {
  readonly look: CellLook;
  readonly from: number;
  readonly length: number;
}

export function runsOf(map: RangeMap, columns: number): Run[] {
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
  const letter = cells.charAt(index) as CellState;
  if (letter !== 'U' || fill === undefined) return letter;
  const level = Math.ceil((4 * (fill[index] ?? 0)) / itemsPerCell);
  return (['U1', 'U1', 'U2', 'U3'] as const)[level] ?? 'U4';
}

export function itemsOf({ first, itemsPerCell }: RangeMap, from: number, length: number): string {
  const one = itemAt(first, from * itemsPerCell);
  const last = itemAt(first, (from + length) * itemsPerCell - 1);
  return one === last ? one : `${one} to ${last}`;
}

function itemAt(first: string, index: number): string {
  const address = parseAddress(first);
  return address === undefined
    ? String(Number(first) + index)
    : formatAddress({ ...address, value: address.value + BigInt(index) });
}

/**
 * Returns the legend: each cell style in the map, with its number of items. If a cell stands for several items, the number comes
 * from the status of the range, and is omitted for a style that the status does not count.
 */
function legend(runs: readonly Run[], { itemsPerCell }: RangeMap, range: RangeStatus): Html {
  const { used, duplicates, leaking, held, free } = range;
  const figures = { D: duplicates, L: leaking, H: held, F: free };
  const cells = (look: CellLook) => runs.reduce((sum, run) => sum + (run.look === look ? run.length : 0), 0);
  const items = (look: CellLook) =>
    itemsPerCell === 1 ? cells(look) : look in figures && amount(figures[look as keyof typeof figures]);
  const present = (Object.keys(LOOKS) as CellLook[]).filter((look) => cells(look) > 0);
  return html`<ul class="legend">${present.map(
    (look) =>
      html`<li><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" fill="url(#p${look})"/></svg>${LOOKS[look][0]} <b>${items(look)}</b>`,
  )}${itemsPerCell > 1 && html`<li>a cell is ${itemsPerCell} items<li>in use <b>${amount(used)}</b>`}</ul>`;
}
