import type { RangeStatus } from '../../lib/status/cluster-status.ts';
import { clipped, upTo } from './budget.ts';
import { type Child, type Html, html, name } from './html.ts';
import { layoutOf } from './map-layout.ts';
import { rangeMap } from './range-map.ts';
import { counted, grouped, percentage, relative, when } from './words.ts';

const MOST_ITEMS = 12;
/** From so many on, a map takes the width of two. */
const WIDE_COLUMNS = 100;
const NOT_READY = 'It may not be allocated from before an enforcing pass has saved it.';
/** From here on a bar warns, and from the second it is alarming: the alarms of the dashboard say the same. */
const FILLING_PERCENT = 80;
const NEARLY_FULL_PERCENT = 95;

/** One range: how full it is, its map, what is held in it. */
export function rangeSection(range: RangeStatus, nowMs: number, bytes: number): Html {
  const { map } = range;
  const wide = map !== undefined && layoutOf(map).columns === WIDE_COLUMNS;
  return html`<section class="range${wide && ' wide'}"><h4>${capital(clipped(range.title, 80))} <code>${clipped(range.range, 80)}</code></h4>
<p class="figures">${bar(range)}<span><b>${percentage(range.used, range.capacity)}</b> in use: ${grouped(range.used)} of ${grouped(range.capacity)}</span>${figures(range).map((figure) => html`<span>${figure}</span>`)}</p>
<p class="soft">${record(range, nowMs)}${range.specRange !== undefined && html` The spec says <code>${clipped(range.specRange, 80)}</code>, which no pass has counted yet.`}</p>
${map === undefined ? html`<p class="soft">No map: the bits of this range are not kept, or were not read.</p>` : rangeMap(range, map)}${holds(range, nowMs, bytes)}</section>`;
}

function bar({ used, capacity, usedPercent }: RangeStatus): Html {
  const level = usedPercent > NEARLY_FULL_PERCENT ? 'bad' : usedPercent > FILLING_PERCENT ? 'warning' : 'fine';
  const width = capacity === 0 ? 0 : Math.min(100, Math.max(used > 0 ? 1 : 0, Math.round((100 * used) / capacity)));
  return html`<svg class="bar ${level}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="6"/><rect class="used" width="${width}" height="6"/></svg>`;
}

function figures({ free, reserved, leaking, held, duplicates }: RangeStatus): string[] {
  return [
    `${grouped(free)} free`,
    ...(reserved > 0 ? [`the first ${grouped(reserved)} are handed out last`] : []),
    ...(held > 0 ? [`${grouped(held)} held`] : []),
    ...(leaking > 0 ? [`${grouped(leaking)} may have leaked`] : []),
    ...(duplicates > 0 ? [counted(duplicates, 'duplicate')] : []),
  ];
}

function record({ allocator, savedAtMs, ready }: RangeStatus, nowMs: number): Child {
  if (savedAtMs === undefined) return 'Figures of the last pass.';
  if (allocator === 'apiserver') return html`What Services claim, saved ${when(savedAtMs, nowMs)}.`;
  return [html`The table is the record, saved ${when(savedAtMs, nowMs)}. `, ready === false && NOT_READY];
}

function holds(range: RangeStatus, nowMs: number, bytes: number): Html | false {
  if (range.holds.length === 0) return false;
  const { markup, left } = upTo(range.holds, bytes, ({ owner, untilMs, takenUpBy, items }) => {
    const more = items.length > MOST_ITEMS ? ` and ${items.length - MOST_ITEMS} more` : '';
    const until = untilMs === undefined ? 'for good' : `ends ${relative(untilMs, nowMs)}`;
    const by = takenUpBy === 'any' ? 'any Service may take it up' : 'only Services of the owner may take it up';
    return html`<li>${name(clipped(owner, 80))} holds <code>${clipped(items.slice(0, MOST_ITEMS).join(', '))}</code>${more}: ${until}, ${by}`;
  });
  return html`<h5>Holds</h5><ul class="holds">${markup}${left > 0 && html`<li>and ${counted(left, 'more hold', 'more holds')}`}</ul>`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
