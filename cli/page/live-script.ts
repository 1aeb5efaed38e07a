/**
 * The page asks for itself and changes what differs, node by node: what is open, focused, filtered or scrolled stays so.
 * Elements with `data-own` are the script's.
 */
export const LIVE_SCRIPT = `
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
  find('link[rel=icon]').href = next.querySelector('link[rel=icon]').href;
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
    show(await reply.text());
  } catch {
    const text = 'Not updated since ' + shownAt.toISOString().slice(11, 19) + ' UTC: the server of this page does not answer';
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
