/** Filters and orders the clusters. Fetches a live page again, and replaces its content. */
export const PAGE_SCRIPT = `(() => {
'use strict';
const find = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const focusable = () => all('main a, main summary, main [tabindex]');
const scrolling = () => all('.scroll');
const live = find('#live'), filter = find('#filter');
const everyMs = Number(document.documentElement.dataset.live);
let shownText = '', shownAt = new Date(), asking = false, timer;

let rows = all('tbody tr');

function choose() {
  const { text, health, order } = filter.elements;
  const words = text.value.toLowerCase().split(/\\s+/);
  const name = (row) => row.cells[0].textContent;
  const ordered = order.value === 'name' ? rows.toSorted((one, other) => name(one).localeCompare(name(other), 'en', { numeric: true })) : rows;
  find('tbody').append(...ordered);
  const isChosen = (part) => words.every((word) => part.textContent.toLowerCase().includes(word)) && (!health.value || part.querySelector('.' + health.value));
  for (const part of [...all('.card'), ...rows]) part.hidden = !isChosen(part);
  const shown = rows.filter((row) => !row.hidden).length;
  filter.querySelector('output').textContent = shown < rows.length ? shown + ' of ' + rows.length : '';
}

function say(look, text) {
  live.className = look;
  if (live.textContent !== text) live.textContent = text;
}

function show(text) {
  shownAt = new Date();
  // The content is not replaced while the user selects text, points at a map, or clicks a link.
  const isRead = !getSelection().isCollapsed || find('figure svg:hover, a:active');
  say('', isRead ? 'Paused while text is selected or the pointer is on a map' : 'Live');
  if (text === shownText || isRead) return;
  shownText = text;
  const next = new DOMParser().parseFromString(text, 'text/html');
  const focused = focusable().indexOf(document.activeElement), scrolled = scrolling().map((part) => part.scrollLeft);
  const news = next.querySelector('#summary').textContent;
  if (find('#summary').textContent !== news) find('#news').textContent = news;
  document.title = next.title;
  const opened = new Map(all('details').map(({ dataset, open }) => [dataset.key, open]));
  find('main').replaceWith(next.querySelector('main'));
  for (const details of all('details')) details.open = opened.get(details.dataset.key) ?? details.open;
  rows = all('tbody tr');
  if (filter) choose();
  scrolling().forEach((part, index) => { part.scrollLeft = scrolled[index] ?? 0; });
  focusable()[focused]?.focus({ preventScroll: true });
}

async function poll() {
  if (document.hidden || asking) return;
  clearTimeout(timer);
  asking = true;
  try {
    const reply = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(15000) });
    const text = await reply.text();
    if (!reply.ok) throw new Error(reply.status === 401 ? 'the server has a new key: open the link that kbctl printed' : text);
    show(text);
  } catch ({ name, message }) {
    const reason = name === 'Error' ? message : 'the server of this page does not answer';
    say('gone', 'Not updated since ' + shownAt.toISOString().slice(11, 19) + ' UTC: ' + reason);
  }
  asking = false;
  timer = setTimeout(poll, everyMs);
}
if (filter) {
  filter.hidden = false;
  filter.addEventListener('input', choose);
  filter.addEventListener('submit', (event) => event.preventDefault());
}
if (live) {
  document.addEventListener('visibilitychange', poll);
  timer = setTimeout(poll, everyMs);
}
})();
`;
