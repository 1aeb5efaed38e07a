import { CELL_STATES, type RangeMap, type RangeStatus } from '../../lib/status/cluster-status.ts';
import { clipped } from './budget.ts';
import { type Html, html } from './html.ts';
import { itemTexts } from './item-text.ts';
import { type CellLook, layoutOf, type MapLayout } from './map-layout.ts';
import { counted, grouped, percentage } from './words.ts';

/** In the order of the legend. The keys name the patterns that cells are drawn with (`patterns.ts`). */
export const LOOKS = {
  ...CELL_STATES,
  R: 'free, reserved band',
  U1: 'up to ¼ in use',
  U2: 'up to ½ in use',
  U3: 'up to ¾ in use',
  U4: 'more than ¾ in use',
} as const satisfies Record<CellLook, string>;

const ORDER: readonly CellLook[] = ['D', 'L', 'H', 'U', 'U4', 'U3', 'U2', 'U1', 'R', 'F', 'X'];
/** Width of a cell on a wide screen, by columns. */
const CELL_PIXELS = new Map([
  [16, 22],
  [32, 15],
  [50, 12],
  [64, 7],
  [100, 9],
]);
const MOST_NAMED = 5;

/** A picture of the range, its legend, and a line that tells of the cell under the pointer or cursor. */
export function rangeMap(range: RangeStatus, map: RangeMap): Html {
  const layout = layoutOf(map);
  const texts = itemTexts(map.first);
  const { columns, rows } = layout;
  const paths = [...layout.strokes].map(
    ([look, d]) => html`<path d="${d}" stroke="url(#p${look})" data-s="${LOOKS[look]}"/>`,
  );
  const width = columns * (CELL_PIXELS.get(columns) ?? 10);
  return html`<figure class="map"><div class="grid"><ol class="rows" aria-hidden="true">${layout.rowLabels.map(
    (label) => html`<li>${label}`,
  )}</ol><svg role="img" aria-label="${alternative(range, map)}" viewBox="0 -.5 ${columns} ${rows}" width="${width}" data-kind="${texts.kind}" data-base="${texts.base}" data-step="${map.itemsPerCell}" data-cells="${map.cells.length}">${paths}<rect class="at" width="1" height="1" data-own=""/></svg></div>
<figcaption>${legend(layout, map)}<p class="told" data-own=""></p></figcaption></figure>`;
}

function legend({ counts }: MapLayout, map: RangeMap): Html {
  const present = ORDER.filter((look) => counts.has(look));
  const unit = map.itemsPerCell > 1 && html`<li>a cell is ${grouped(map.itemsPerCell)} ${itemsOf(map)}`;
  return html`<ul class="legend">${present.map(
    (look) =>
      html`<li><svg viewBox="0 -.5 1 1" aria-hidden="true"><path d="M0 0h1" stroke="url(#p${look})"/></svg>${LOOKS[look]} <b>${grouped(counts.get(look) ?? 0)}</b>`,
  )}${unit}</ul>`;
}

/** What the picture says, for who does not see it. */
function alternative(range: RangeStatus, map: RangeMap): string {
  const { at } = itemTexts(map.first);
  const named = (letter: 'D' | 'L') => {
    const cells = [...map.cells].flatMap((cell, index) => (cell === letter ? [at(index * map.itemsPerCell)] : []));
    if (cells.length === 0) return [];
    const more = cells.length > MOST_NAMED ? ` and ${cells.length - MOST_NAMED} more` : '';
    return [`${CELL_STATES[letter]} at ${cells.slice(0, MOST_NAMED).join(', ')}${more}`];
  };
  const share = percentage(range.used, range.capacity);
  return [
    `Map of the ${clipped(range.title, 80)} ${clipped(range.range, 80)}: ${grouped(range.used)} of ${grouped(range.capacity)} in use (${share})`,
    `${grouped(range.free)} free`,
    ...(range.held > 0 ? [`${grouped(range.held)} held`] : []),
    ...named('D'),
    ...named('L'),
    ...(map.itemsPerCell > 1 ? [`${counted(map.itemsPerCell, 'item')} a cell`] : []),
  ].join(', ');
}

function itemsOf(map: RangeMap): string {
  return itemTexts(map.first).kind === 'port' ? 'ports' : 'addresses';
}
