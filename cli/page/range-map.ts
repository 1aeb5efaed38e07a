import { CELL_STATES, levelOfUse, type RangeMap, type RangeStatus } from '../status/cluster-status.ts';
import { type Child, clipped, type Html, html, name, upTo } from './html.ts';
import { type CellLook, itemsFrom, layoutOf, type MapLayout } from './map-layout.ts';
import { counted, grouped, percentage, relative, when } from './words.ts';

const MOST_ITEMS = 12;
/** From this many columns on, a map takes the width of two. */
const WIDE_COLUMNS = 100;
const NOT_READY = 'Nothing can be allocated until a pass in enforce saves it.';

/** Returns one range: how full it is, its map and its holds. */
export function rangeSection(range: RangeStatus, nowMs: number, bytes: number): Html {
  const { map } = range;
  const wide = map !== undefined && layoutOf(map).columns === WIDE_COLUMNS;
  return html`<section class="range${wide && ' wide'}"><h4>${capital(clipped(range.title, 80))} <code>${clipped(range.range, 80)}</code></h4>
<p class="figures">${bar(range)}<span><b>${percentage(range.used, range.capacity)}</b> in use: ${grouped(range.used)} of ${grouped(range.capacity)}</span>${figures(range).map((figure) => html`<span>${figure}</span>`)}</p>
<p class="soft">${record(range, nowMs)}${range.specRange !== undefined && html` The spec has <code>${clipped(range.specRange, 80)}</code>, which no pass has counted yet.`}</p>
${map === undefined ? range.sumOf === undefined && html`<p class="soft">No map: the usage bitmap of this range is not stored, or was not read.</p>` : rangeMap(range, map)}${holds(range, nowMs, bytes)}</section>`;
}

function bar({ used, capacity, usedPercent }: RangeStatus): Html {
  const width = capacity === 0 ? 0 : Math.min(100, Math.max(used > 0 ? 1 : 0, Math.round((100 * used) / capacity)));
  return html`<svg class="bar ${levelOfUse(usedPercent) ?? 'fine'}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="6"/><rect class="used" width="${width}" height="6"/></svg>`;
}

function figures({ free, reserved, leaking, held, duplicates }: RangeStatus): string[] {
  return [
    `${grouped(free)} free`,
    ...(reserved > 0 ? [`the first ${grouped(reserved)} are allocated last`] : []),
    ...(held > 0 ? [`${grouped(held)} held`] : []),
    ...(leaking > 0 ? [`${grouped(leaking)} may have leaked`] : []),
    ...(duplicates > 0 ? [counted(duplicates, 'duplicate')] : []),
  ];
}

function record({ serviceCidr, allocator, savedAtMs, ready }: RangeStatus, nowMs: number): Child {
  if (serviceCidr !== undefined && ready === false)
    return 'Not ready or being deleted: API servers allocate nothing from it.';
  if (savedAtMs === undefined) return 'Figures of the last pass.';
  if (allocator === 'apiserver') return html`What Services claim, saved ${when(savedAtMs, nowMs)}.`;
  return [html`The table is the record, saved ${when(savedAtMs, nowMs)}. `, ready === false && NOT_READY];
}

function holds(range: RangeStatus, nowMs: number, bytes: number): Html | false {
  if (range.holds.length === 0) return false;
  const { markup, left } = upTo(range.holds, bytes, ({ owner, untilMs, takenUpBy, items }) => {
    const more = items.length > MOST_ITEMS ? ` and ${items.length - MOST_ITEMS} more` : '';
    const until = untilMs === undefined ? 'for good' : `ends ${relative(untilMs, nowMs)}`;
    const by = takenUpBy === 'any' ? 'any Service may claim it' : 'only Services of the owner may claim it';
    return html`<li>${name(clipped(owner, 80))} holds <code>${clipped(items.slice(0, MOST_ITEMS).join(', '))}</code>${more}: ${until}, ${by}`;
  });
  return html`<h5>Holds</h5><ul class="holds">${markup}${left > 0 && html`<li>and ${counted(left, 'more hold', 'more holds')}`}</ul>`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The keys name the patterns of cells. */
export const LOOKS = {
  ...CELL_STATES,
  R: 'free, reserved band',
  U1: 'up to ¼ in use',
  U2: 'up to ½ in use',
  U3: 'up to ¾ in use',
  U4: 'more than ¾ in use',
} as const satisfies Record<CellLook, string>;

const ORDER: readonly CellLook[] = ['D', 'L', 'H', 'U', 'U4', 'U3', 'U2', 'U1', 'R', 'F', 'X'];
/** The width of a cell on a wide screen, by columns. */
const CELL_PIXELS = new Map([
  [16, 22],
  [32, 15],
  [50, 12],
  [64, 7],
  [100, 9],
]);

/** Returns the map of a range, its legend, and a line about the cell under the pointer or cursor. */
function rangeMap(range: RangeStatus, map: RangeMap): Html {
  const layout = layoutOf(map);
  const { kind, base } = itemsFrom(map.first);
  const { columns, rows } = layout;
  const paths = [...layout.strokes].map(
    ([look, d]) => html`<path d="${d}" stroke="url(#p${look})" data-s="${LOOKS[look]}"/>`,
  );
  const width = columns * (CELL_PIXELS.get(columns) ?? 10);
  return html`<figure class="map"><div class="grid"><ol class="rows" aria-hidden="true">${layout.rowLabels.map(
    (label) => html`<li>${label}`,
  )}</ol><svg role="img" aria-label="${alternative(range)}" viewBox="0 -.5 ${columns} ${rows}" width="${width}" data-kind="${kind}" data-base="${base}" data-step="${map.itemsPerCell}" data-cells="${map.cells.length}">${paths}<rect class="at" width="1" height="1" data-own=""/></svg></div>
<figcaption>${legend(layout, map)}<p class="cell" data-own=""></p></figcaption></figure>`;
}

function legend({ counts }: MapLayout, map: RangeMap): Html {
  const present = ORDER.filter((look) => counts.has(look));
  const unit = map.itemsPerCell > 1 && html`<li>a cell is ${grouped(map.itemsPerCell)} ${itemsOf(map)}`;
  return html`<ul class="legend">${present.map(
    (look) =>
      html`<li><svg viewBox="0 -.5 1 1" aria-hidden="true"><path d="M0 0h1" stroke="url(#p${look})"/></svg>${LOOKS[look]} <b>${grouped(counts.get(look) ?? 0)}</b>`,
  )}${unit}</ul>`;
}

function alternative(range: RangeStatus): string {
  const share = percentage(range.used, range.capacity);
  const use = `${grouped(range.used)} of ${grouped(range.capacity)} in use (${share})`;
  return `Map of the ${clipped(range.title, 80)} ${clipped(range.range, 80)}: ${[use, ...figures(range)].join(', ')}`;
}

function itemsOf(map: RangeMap): string {
  return itemsFrom(map.first).kind === 'port' ? 'ports' : 'addresses';
}
