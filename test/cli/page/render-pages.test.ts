import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { clipped, firstOf, html } from '../../../cli/page/html.ts';
import { PAGE_CSS } from '../../../cli/page/page-css.ts';
import { itemsOf, LOOKS, runsOf } from '../../../cli/page/range-map.ts';
import { renderClusterPage, renderFleetPage } from '../../../cli/page/render-pages.ts';
import type { ClusterStatus, RangeMap } from '../../../cli/status/cluster-status.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  aStatusOf,
  clustersOfEachKind,
  fleetOf,
  loopsOf,
  NOW_MS,
  nodePorts,
} from '../../support/a-fleet-status.ts';
import { found } from '../../support/found.ts';
import { anyText, runs } from '../../support/properties.ts';

function textOf(page: string): string {
  return page
    .replace(/<(style|script|head)>.*?<\/\1>/gs, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

const TAG = /<(\/?[a-zA-Z!][\w-]*)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*\/?>/y;

/**
 * Returns each tag of a page with the names of its attributes, without style and script.
 * @throws if a `<` does not begin a tag whose attributes are all in quotes
 */
function tagsOf(page: string): string[] {
  const markup = page.replace(/<(style|script)>.*?<\/\1>/gs, '<$1></$1>');
  const tags: string[] = [];
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', TAG.lastIndex)) {
    TAG.lastIndex = at;
    const [, tag, attributes = ''] = TAG.exec(markup) ?? [];
    if (tag === undefined) throw new Error(`no tag: ${markup.slice(at, at + 60)}`);
    tags.push([tag, ...[...attributes.matchAll(/([\w:-]+)(?:="[^"]*")?/g)].map(([, name]) => name)].join(' '));
  }
  return tags;
}

const pageOf = (cluster: ClusterStatus) => renderClusterPage(cluster, { atMs: NOW_MS });
const [contested, endpointsDown, , , paused] = clustersOfEachKind().map((cluster) => textOf(pageOf(cluster)));

test('no text from the table or an API server becomes a tag or an attribute of the page', () => {
  const tagsWith = (text: string) => {
    const fleet = { table: text, unreadable: [{ name: text, message: text }] };
    return tagsOf(renderFleetPage(aFleetStatus([aStatusOf(text)], fleet)) + pageOf(aStatusOf(text)));
  };
  const calm = tagsWith('x');

  for (const text of ['<script>alert(1)</script>', `</style>" onerror="alert(1)" x='`, '<b>'.repeat(100_000)]) {
    expect(tagsWith(text)).toEqual(calm);
  }
  fc.assert(
    fc.property(anyText({ minLength: 1 }), (text) => {
      fc.pre(text.trim() !== '' && text !== '__proto__');
      expect(tagsWith(text)).toEqual(calm);
    }),
    { numRuns: runs(10) },
  );
});

test('the size of a page is limited, whatever the table contains', () => {
  const long = 'm'.repeat(5_000);
  const holds = Array(500).fill({ owner: long, takenUpBy: 'any', items: Array(300).fill('1') });
  const heavy = aClusterStatus({
    health: 'unhealthy',
    findings: Array(1_000).fill(aFinding({ message: long, resolution: long })),
    attention: Array(400).fill({ level: 'unhealthy', word: 'duplicate', message: long, next: long }),
    apiServers: Array(300).fill(anApiServer('192.0.2.1', { lastProbe: long })),
    ranges: [{ ...nodePorts(), holds }],
  });
  const unreadable = Array(1_000).fill({ name: long, message: long });

  expect(Buffer.byteLength(pageOf(heavy))).toBeLessThan(600_000);
  const fleet = aFleetStatus(Array(5_000).fill(heavy), { unreadable });
  expect(Buffer.byteLength(renderFleetPage(fleet))).toBeLessThan(1_000_000);
});

const fleetPage = renderFleetPage(aFleetStatus(clustersOfEachKind()));
const text = textOf(fleetPage);

test('the page begins with the number of clusters in each state of health, then the problems and their resolutions', () => {
  expect(text).toContain(
    '6 clusters: 2 unhealthy, 1 warning, 1 unknown, 1 paused, 1 good. All clusters Needs attention prod-eu-1 duplicate ',
  );
  expect(text).toMatch(/the cluster IP \[IPv4\]:10\.0\.0\.37 .*? recreate the newer one.*? kbctl explain duplicate/);
  expect(fleetPage).toContain('<title>2 of 6 need attention – kube-bootstrap-controller-prod</title>');
});

test('the page shows the name of the table, the time of the read, and the output of kbctl status for each cluster', () => {
  expect(text).toContain('Table kube-bootstrap-controller-prod, read 2026-11-21T06:15:39Z');
  expect(text).toContain('edge-ap-3 warning almostFull enforce 2/2 5s ago 94% 0 ');
});

const unreadable = [{ name: 'prod-eu-9', message: 'a later version wrote it' }];
const pausedAll = { untilMs: NOW_MS + 60_000, reason: 'maintenance', by: 'jo' };
test.each([
  ['that nothing needs attention', aFleetStatus([aClusterStatus()]), 'Needs attention Nothing right now.'],
  ['that nothing needs attention in an empty table', aFleetStatus([]), 'Needs attention Nothing right now.'],
  ['unreadable specs', aFleetStatus([], { unreadable }), 'prod-eu-9 Corrupt Its spec cannot be read: a later'],
  [
    'the pause of all clusters',
    aFleetStatus([], { pausedAll }),
    'all clusters are paused until 2026-11-21T06:16:39.000Z (60s from now) by jo: maintenance',
  ],
])('the page shows %s', (_, fleet, words) => {
  expect(textOf(renderFleetPage(fleet))).toContain(words);
});

test('a page from the server links to the page of each cluster, and a page in a file does not', () => {
  const fleet = aFleetStatus(fleetOf(100, 30));

  expect(renderFleetPage(fleet, { live: { pollMs: 1 } })).toContain('<a href="clusters/tenant-99-eu-central-1">');
  expect(renderFleetPage(fleet)).not.toContain('href="clusters/');
});

test.each([
  ['a lease with its last probe', endpointsDown, '192.0.2.20 expired 65s ago no answer: connect ECONNREFUSED'],
  ['a withdrawal', endpointsDown, '192.0.2.21 withdrawn back in 30m answered 500'],
  ['a failed pass with its error', endpointsDown, 'kubernetes-service failing 9s ago 5s 1 Unavailable: GET /api/v1/'],
  ['a hold', contested, '10.0.0.0/24 migration-7 in 90m Services of the owner 10.0.0.200,10.0.0.201,10.0.0.202'],
  ['a range', contested, '10.0.0.0/24 cluster IPs 48% 122 of 254 4 3 1'],
  ['a finding with its Service', contested, 'duplicate reports/batch 10.0.0.37 46s ago the cluster IP [IPv4]:10.0'],
  ['a pause', paused, 'paused until 2026-11-21T08:05:39.000Z (110m from now) by jo: control plane moves'],
])('the page shows %s', (_, text, words) => {
  expect(text).toContain(words);
});

test('the page shows the last changes, the latest first, and the writes that the next pass would make in mode enforce', () => {
  const lastChange = { atMs: NOW_MS - 60_000, changes: ['updated Endpoints default/kubernetes: 192.0.2.1'] };
  const [first, second] = loopsOf({ lastChange, wouldWrite: ['create Namespace kube-public'] });
  const later = { ...found(second), wouldWrite: [], lastChange: { atMs: NOW_MS, changes: ['created Service'] } };
  expect(textOf(pageOf(aClusterStatus({ loops: [found(first), later] })))).toContain(
    'Would write system-namespaces: would create Namespace kube-public Last changes kubernetes-service, 0s ago: created Service system-namespaces, 60s ago: updated Endpoints default/kubernetes: 192.0.2.1',
  );
});

test('the page loads no other resource, and runs only its inline script', () => {
  const page = renderFleetPage(aFleetStatus(clustersOfEachKind()), { live: { pollMs: 2_000 } });
  expect(page).toMatch(
    /content="default-src &#39;none&#39;; style-src &#39;sha256-[^;]+&#39;; script-src &#39;sha256-[^;]+&#39;; img-src data:; connect-src &#39;self&#39;; base-uri/,
  );
  expect([...page.matchAll(/\b(?:src|href)="(?!#|clusters\/|data:)[^"]*"/g)]).toEqual([]);
  expect(page).not.toMatch(/ style="| on\w+="/);
});

const letters = ['D', 'L', 'H', 'U', 'R', 'F', 'X'];
const anyMap: fc.Arbitrary<RangeMap> = fc
  .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 1_024, size: 'max' })
  .map((cells) => ({ cells, first: '10.0.0.0', itemsPerCell: 1 }));

test('the runs of equal cells in a map contain each cell once and in order, and no run continues on the next row', () => {
  fc.assert(
    fc.property(anyMap, fc.constantFrom(32, 64), (map, columns) => {
      const runs = runsOf(map, columns);
      expect(runs.map(({ look, length }) => look.repeat(length)).join('')).toBe(map.cells);
      expect(runs.filter(({ from, length }) => (from % columns) + length > columns)).toEqual([]);
    }),
  );
});

test('a map cell of several items shows one of four levels of use, or the duplicate, leak or hold among its items', () => {
  const fill = [0, 1, 4, 5, 8, 9, 12, 13, 16, 16, 3, 1];
  const map = { first: '10.96.0.0', itemsPerCell: 16, cells: `F${'U'.repeat(8)}DLH`, fill };
  const looks = runsOf(map, 32).flatMap(({ look, length }) => Array<string>(length).fill(look));
  expect(looks).toEqual(['F', 'U1', 'U1', 'U2', 'U2', 'U3', 'U3', 'U4', 'U4', 'D', 'L', 'H']);
});

test.each([
  ['10.96.0.0', 16, 3, 2, '10.96.0.48 to 10.96.0.79'],
  ['30000', 4, 691, 1, '32764 to 32767'],
])(
  'in a map that begins at %s with %d items per cell, the run from cell %d with %d cells has the label %s',
  (first, itemsPerCell, from, length, items) => {
    expect(itemsOf({ first, itemsPerCell, cells: '' }, from, length)).toBe(items);
  },
);

test('the legend of a map explains the pattern of each state of a cell', () => {
  const range = { ...nodePorts(), map: { itemsPerCell: 1, first: '30000', cells: letters.join('') } };
  const fills = { itemsPerCell: 16, first: '10.0.0.0', cells: 'UUUU', fill: [1, 5, 9, 16] };
  const page = renderClusterPage(aClusterStatus({ ranges: [range, { ...range, map: fills }] }), { atMs: NOW_MS });
  for (const [look, [word]] of Object.entries(LOOKS)) {
    expect(page).toContain(`<pattern id="p${look}"`);
    expect(page).toContain(`fill="url(#p${look})"/></svg>${word} <b>`);
  }
});

test('the legend of a map with several items per cell counts the items of the range, not the cells', () => {
  const map = { itemsPerCell: 16, first: '10.0.0.0', cells: 'UUDLHF', fill: [1, 5, 0, 0, 0, 0] };
  const range = { ...nodePorts(), used: 40, free: 56, duplicates: 1, leaking: 3, held: 4, map };
  expect(textOf(renderClusterPage(aClusterStatus({ ranges: [range] }), { atMs: NOW_MS }))).toContain(
    'duplicate 1 leaking 3 held 4 up to ½ in use up to ¼ in use free 56 a cell is 16 items in use 40 ',
  );
});

test('a map has a text alternative, and each cell has a title with its items and state', () => {
  const [contested = aClusterStatus()] = clustersOfEachKind();
  const page = renderClusterPage(contested, { atMs: NOW_MS });
  expect(page).toMatch(/aria-label="Map of the cluster IPs 10\.0\.0\.0\/24: \d+ of 254 in use"/);
  expect(page).toContain('<title>10.0.0.37: duplicate</title>');
});

const unit = fc.constantFrom('<', '>', '"', "'", '&', '=', '/', ' ', '\n', '-', '!', 'a', 'script', '\u202e', '\0');
const markup = fc.oneof(
  anyText(),
  fc.string({ unit }),
  fc.uint16Array().map((units) => String.fromCharCode(...units)),
);

test.each([
  ['markup', '<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
  ['quotes', `" onclick='x'`, '&quot; onclick=&#39;x&#39;'],
  ['an entity', '&lt;', '&amp;lt;'],
  ['a character that reverses the direction of text', 'a\u202eb', 'a\\u{202e}b'],
  ['a control character', 'a\0b\u0085', 'a\\u{0}b\\u{85}'],
  ['a line break', 'a\nb', 'a\\nb'],
  ['half of a surrogate pair', 'a\ud800b', 'a\ufffdb'],
  ['letters of any script', 'čaj 茶 🍵', 'čaj 茶 🍵'],
])('a value with %s is shown as text', (_, text, markup) => {
  expect(String(html`<p>${text}</p>`)).toBe(`<p>${markup}</p>`);
});

test('every invisible character of a value becomes visible', () => {
  fc.assert(fc.property(markup, (text) => !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(String(html`${text}`))));
});

test('a template within a template is not escaped again, and absent values add no text', () => {
  expect(String(html`<ul>${[html`<li>1`, false, undefined, html`<li>${2}`]}</ul>`)).toBe('<ul><li>1<li>2</ul>');
});

test('an attribute without quotes is an error', () => {
  expect(() => html`<p title=${'x'}>`).toThrow('an attribute without quotes: <p title=');
});

test('a long text is not cut within a character', () => {
  expect(clipped('a🍵b', 2)).toBe('a…');
  expect(clipped('short')).toBe('short');
});

test('if a list is too long, the page shows only the first entries, the number of all entries, and the command that prints the whole list', () => {
  const list = (items: readonly number[]) => html`${firstOf(items, 2, (shown) => shown.join(), 'kbctl get runs')}`;
  expect(String(list([1, 2]))).toBe('1,2');
  expect(String(list([1, 2, 3]))).toBe('1,2<p class="soft">2 of 3; all of them: <code>kbctl get runs</code></p>');
});

type Colours = Readonly<Record<string, string>>;

const [LIGHT = {}, DARK = {}] = [...PAGE_CSS.matchAll(/:root\{(.*?)\}/gs)].map(
  ([, declarations = '']): Colours =>
    Object.fromEntries([...declarations.matchAll(/--(\w+):(#\w+)/g)].map(([, name, colour]) => [name, colour])),
);

/** Returns the contrast of two colours as WCAG 2 defines it. */
function contrast(one = '', other = ''): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(colour: string): number {
  const hex = colour.length === 4 ? colour.replace(/[\da-f]/g, '$&$&') : colour;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((share) => (share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test.each([
  ['light', LIGHT],
  ['dark', DARK],
])('in the %s colours, text can be read, and cells, marks and edges stand out', (_, colours) => {
  const on = (grounds: readonly string[], names: readonly string[]) =>
    names.flatMap((name) => grounds.map((ground) => contrast(colours[name], colours[ground])));
  const texts = ['ink', 'soft', 'link', 'unhealthy', 'warning', 'unknown', 'paused', 'good'];
  expect(Math.min(...on(['bg', 'card'], texts))).toBeGreaterThanOrEqual(4.5);
  const shapes = [
    ...on(['bg', 'card'], ['edge', 'focus']),
    ...on(['free'], ['used', 'dup', 'leak', 'held', 'band']),
    ...on(['used', 'dup', 'leak', 'held'], ['mark']),
  ];
  expect(Math.min(...shapes)).toBeGreaterThanOrEqual(3);
});

test('the style sheet loads no other resource', () => {
  expect(PAGE_CSS).not.toMatch(/@import|url\((?!"data:|%23)|<\/style/);
});
