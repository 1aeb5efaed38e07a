import { itemText } from './map-layout.ts';

/** The filter of the table of all clusters. Rows keep their place; others are hidden. */
const FILTER = `
const find = (selector) => document.querySelector(selector);

function filterRows() {
  const form = find('#filter');
  if (!form) return;
  form.hidden = false;
  const name = find('#filter-name').value.trim().toLowerCase();
  const health = find('#filter-health').value;
  const rows = [...find('.glance').tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const fits = row.cells[0].textContent.toLowerCase().includes(name) && (!health || row.cells[1].className === health);
    if (row.hidden === fits) row.hidden = !fits;
    if (fits) shown++;
  }
  const text = name || health ? shown + ' of ' + rows.length + ' shown' : '';
  const count = find('#filter-count');
  if (count.textContent !== text) count.textContent = text;
}
document.addEventListener('input', (event) => event.target.closest('#filter') && filterRows());
document.addEventListener('submit', (event) => event.preventDefault());
`;

/** Shows the cell under the pointer or the cursor. */
const MAPS = String.raw`
const cursors = new WeakMap();

function showCell(map, index) {
  const { kind, base, step, cells } = map.dataset;
  const columns = map.viewBox.baseVal.width;
  const info = map.closest('.map').querySelector('.cell');
  const cursor = map.querySelector('.at');
  const inside = index >= 0 && index < Number(cells);
  cursor.classList.toggle('on', inside);
  if (!inside) return void (info.textContent = '');
  cursors.set(map, index);
  const column = index % columns, row = Math.floor(index / columns);
  cursor.setAttribute('x', column);
  cursor.setAttribute('y', row - 0.5);
  const first = itemText(kind, base, index * step);
  const last = step > 1 ? ' to ' + itemText(kind, base, (index + 1) * step - 1) : '';
  const text = first + last + ': ' + stateAt(map, column, row);
  if (info.textContent !== text) info.textContent = text;
}

function stateAt(map, column, row) {
  for (const path of map.querySelectorAll('path')) {
    for (const [, x, y, length] of path.getAttribute('d').matchAll(/M(\d+) (\d+)h(\d+)/g)) {
      if (Number(y) === row && column >= x && column < Number(x) + Number(length)) return path.dataset.s;
    }
  }
  return '';
}

const mapOf = (event) => event.target.closest?.('.map svg[role=img]');

function pointed(event) {
  const map = mapOf(event);
  if (!map) return;
  const box = map.getBoundingClientRect(), { width, height } = map.viewBox.baseVal;
  const column = Math.floor(((event.clientX - box.left) / box.width) * width);
  const row = Math.floor(((event.clientY - box.top) / box.height) * height);
  map.closest('.map').querySelector('.cell').removeAttribute('aria-live');
  showCell(map, column >= 0 && column < width ? row * width + column : -1);
}
document.addEventListener('pointermove', pointed);
document.addEventListener('pointerdown', pointed);
document.addEventListener('pointerout', (event) => {
  const map = mapOf(event);
  if (map && map !== document.activeElement && event.pointerType === 'mouse') showCell(map, -1);
});
document.addEventListener('focusin', (event) => mapOf(event)?.matches(':focus-visible') && showCell(mapOf(event), cursors.get(mapOf(event)) ?? 0));
document.addEventListener('focusout', (event) => mapOf(event) && showCell(mapOf(event), -1));
document.addEventListener('keydown', (event) => {
  const map = mapOf(event);
  if (!map) return;
  const columns = map.viewBox.baseVal.width, last = Number(map.dataset.cells) - 1, at = cursors.get(map) ?? 0;
  const next = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - columns, ArrowDown: at + columns, Home: 0, End: last }[event.key];
  if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  map.closest('.map').querySelector('.cell').setAttribute('aria-live', 'polite');
  showCell(map, next < 0 || next > last ? at : next);
});
const reachable = () => document.querySelectorAll('.map svg[role=img]').forEach((map) => map.setAttribute('tabindex', '0'));
`;

/** A link to a cluster opens its details. */
const DETAILS = `
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.nodeName === 'DETAILS') { target.open = true; target.scrollIntoView(); }
}
addEventListener('hashchange', openTarget);
document.addEventListener('click', (event) => {
  if (event.target.closest?.('a')?.hash === location.hash && location.hash) openTarget();
});
`;

/**
 * Fetches the page again and changes only the nodes that differ: open, focused, filtered and scrolled parts stay so.
 * Elements with `data-own` belong to the script.
 */
const LIVE = `
const KEPT = new Set(['open', 'hidden', 'tabindex', 'data-own']);
const keyOf = (node) => node.id || (node.nodeName === 'TR' && node.cells[0]?.textContent) || '';

function become(now, next) {
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== next.data) now.data = next.data;
    return;
  }
  if ('own' in now.dataset) return;
  for (const { name } of [...now.attributes]) if (!KEPT.has(name) && !next.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of next.attributes) {
    if (!KEPT.has(name) && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  childrenBecome(now, next);
}

function childrenBecome(now, next) {
  const wanted = new Set([...next.childNodes].map(keyOf));
  for (const child of [...now.childNodes]) if (keyOf(child) && !wanted.has(keyOf(child))) child.remove();
  const keyed = new Map([...now.childNodes].filter(keyOf).map((child) => [keyOf(child), child]));
  let at = now.firstChild;
  for (const child of [...next.childNodes]) {
    const key = keyOf(child);
    const same = key ? keyed.get(key) : at && !keyOf(at) ? at : undefined;
    keyed.delete(key);
    if (!same || same.nodeName !== child.nodeName) {
      now.insertBefore(document.importNode(child, true), at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else now.insertBefore(same, at);
    become(same, child);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

const live = find('#live');
let shownText = '', shownAt = new Date(), asking = false, timer;

function show(text) {
  shownAt = new Date();
  live.className = '';
  if (live.textContent !== 'Live') live.textContent = 'Live';
  if (text === shownText) return;
  shownText = text;
  const next = new DOMParser().parseFromString(text, 'text/html');
  const focused = document.activeElement, summary = find('#summary').textContent;
  become(find('#page'), next.getElementById('page'));
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  document.title = next.title;
  if (find('#summary').textContent !== summary) find('#news').textContent = find('#summary').textContent;
  filterRows();
  reachable();
}

async function poll() {
  if (document.hidden || asking) return;
  clearTimeout(timer);
  asking = true;
  try {
    const reply = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(15000) });
    if (reply.status === 401) throw new Error('the server has a new key: open the link that kbctl printed');
    show(await reply.text());
  } catch ({ name, message }) {
    const reason = name === 'Error' ? message : 'the server of this page does not answer';
    const text = 'Not updated since ' + shownAt.toISOString().slice(11, 19) + ' UTC: ' + reason;
    live.className = 'gone';
    if (live.textContent !== text) live.textContent = text;
  }
  asking = false;
  timer = setTimeout(poll, Number(document.documentElement.dataset.live));
}
if (live) {
  document.addEventListener('visibilitychange', poll);
  timer = setTimeout(poll, Number(document.documentElement.dataset.live));
}
`;

/** The script of the page. Without it only the filter and single cells are missing. */
export const PAGE_SCRIPT = `(() => {
'use strict';
const itemText = ${String(itemText)};
${FILTER}${MAPS}${DETAILS}${LIVE}
filterRows();
reachable();
openTarget();
})();
`;
