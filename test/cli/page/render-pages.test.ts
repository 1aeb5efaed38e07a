import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { clusterDetails } from '../../../cli/page/cluster-details.ts';
import { LOOKS } from '../../../cli/page/range-map.ts';
import { renderClusterPage, renderFleetPage } from '../../../cli/page/render-pages.ts';
import {
  CELL_STATES,
  type ClusterStatus,
  type LoopStatus,
  type RangeStatus,
} from '../../../cli/status/cluster-status.ts';
import {
  aClusterStatus,
  aFinding,
  aFleetStatus,
  anApiServer,
  anIPv6Range,
  aSlash16,
  clustersOfEachKind,
  loopsOf,
  manyClusters,
  nodePorts,
  STATUS_AT_MS,
} from '../../support/a-fleet-status.ts';
import { anyText, runs } from '../../support/properties.ts';
import { tagsOf } from './tags-of.ts';

const MOST_BYTES = 300_000;

function textOf(page: string): string {
  return page
    .replace(/<(style|script|head)>.*?<\/\1>/gs, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

/** Every text that comes from elsewhere is `text`. */
function withText(text: string): ClusterStatus {
  return aClusterStatus({
    health: 'bad',
    owner: { stack: text },
    paused: { untilMs: STATUS_AT_MS + 1, reason: text, by: text, all: true },
    attention: [{ level: 'bad', word: text, message: text, next: text }],
    apiServers: [anApiServer(text, { host: text, lastProbe: text }), { host: text, state: 'neverSeen' }],
    loops: loopsOf({
      state: 'failing',
      lastPass: {
        startedAtMs: 1,
        durationMs: 1,
        outcome: 'failed',
        mode: 'observe',
        counts: { [text]: 1 },
        error: { code: text, message: text },
        findings: 1,
      },
    }),
    ranges: [
      { ...nodePorts(0.1), title: text, range: text, holds: [{ owner: text, takenUpBy: 'any', items: [text] }] },
    ],
    findings: [aFinding({ message: text, service: text, item: text, mend: text })],
    unreadable: [text],
  });
}

/** Each cell another look than the one before: the longest map there is. */
function worstMap(range: RangeStatus): RangeStatus {
  const cells = Array.from({ length: 4_096 }, (_, index) => 'ULFDH'.charAt(index % 5)).join('');
  return {
    ...range,
    map: { itemsPerCell: 16, first: '10.96.0.0', cells, fill: Array.from({ length: 4_096 }, (_, index) => index % 17) },
  };
}

test('no text from a cluster becomes a tag or an attribute', () => {
  const tagsWith = (text: string) =>
    tagsOf(
      renderFleetPage(aFleetStatus([withText(text)], { table: text, unreadable: [{ name: text, message: text }] })),
    );
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

describe('the page stays under 300 KB', () => {
  const long = 'm'.repeat(500);
  const findings = Array.from({ length: 400 }, (_, index) =>
    aFinding({ message: `${index} ${long}`, mend: `${index} ${long}` }),
  );
  const heavy = {
    health: 'bad' as const,
    findings,
    attention: Array(400).fill({ level: 'bad', word: 'duplicate', message: long, next: long }),
    apiServers: Array.from({ length: 300 }, () => anApiServer('192.0.2.1', { lastProbe: long })),
    ranges: [aSlash16(), anIPv6Range(), nodePorts()].map((range) => ({
      ...worstMap(range),
      holds: Array(500).fill({ owner: 'o'.repeat(63), takenUpBy: 'any', items: Array(300).fill('10.96.0.1') }),
    })),
    unreadable: Array(100).fill(long),
  };
  const bidi = '\u202e'.repeat(600);

  test.each([
    ['with 1,000 clusters that all need attention', () => manyClusters(1_000, 1_000)],
    [
      'with 1,000 clusters with the longest names',
      () => manyClusters(1_000).map((cluster) => ({ ...cluster, name: cluster.name.padEnd(63, 'x') })),
    ],
    ['with 10,000 clusters', () => manyClusters(10_000)],
    ['with one cluster that has too much of everything', () => [aClusterStatus(heavy)]],
    [
      'with 200 such clusters',
      () => Array.from({ length: 200 }, (_, index) => aClusterStatus({ ...heavy, name: `heavy-${index}` })),
    ],
    ['with one cluster of hostile texts', () => [withText(bidi)]],
  ])('the page %s stays under 300 KB', (_, clusters) => {
    const fleet = aFleetStatus(clusters());
    for (const options of [{}, { live: { pollMs: 2_000 } }]) {
      expect(Buffer.byteLength(renderFleetPage(fleet, options))).toBeLessThan(MOST_BYTES);
    }
  });

  test('the page of one cluster stays under 300 KB', () => {
    expect(Buffer.byteLength(renderClusterPage(aClusterStatus(heavy), { atMs: STATUS_AT_MS }))).toBeLessThan(
      MOST_BYTES,
    );
  });

  test('the page with unreadable specs stays under 300 KB', () => {
    const unreadable = Array.from({ length: 1_000 }, (_, index) => ({ name: `broken-${index}`, message: long }));
    const page = renderFleetPage(aFleetStatus(manyClusters(1_000), { unreadable }));

    expect(Buffer.byteLength(page)).toBeLessThan(MOST_BYTES);
  });
});

describe('the page of all clusters', () => {
  const page = renderFleetPage(aFleetStatus(clustersOfEachKind()));
  const text = textOf(page);

  test('the page begins with the number of clusters that need attention, their problems and resolutions', () => {
    expect(text).toContain(
      '2 of 6 clusters need attention, 1 has a warning, 1 is not known yet, 1 is paused, 1 is good.',
    );
    expect(text.indexOf('Needs attention')).toBeLessThan(text.indexOf('All clusters'));
    expect(text).toMatch(
      /Needs attention prod-eu-1 the cluster IP \[IPv4\]:10\.0\.0\.37 .*? recreate the newer one.*? kbctl explain duplicate/,
    );
  });

  test('the page shows when the table was read', () => {
    expect(page).toContain('read <time datetime="2026-11-21T06:15:39Z">2026-11-21T06:15:39Z</time>');
  });

  test.each([
    ['health in words', 'edge-ap-3 warning 0 2/2 1 late 93 % enforce apiserver'],
    [
      'a lease with its last probe',
      '192.0.2.20 expired 65s ago 80s ago no answer: connect ECONNREFUSED 192.0.2.20:6443 8 misses in a row server',
    ],
    ['a withdrawal', '192.0.2.21 withdrawn , ends in 30m'],
    [
      'a failed pass with its error',
      'Unavailable GET /api/v1/namespaces/default/services/kubernetes: connect ECONNREFUSED 192.0.2.20:6443',
    ],
    [
      'a hold',
      'migration-7 holds 10.0.0.200, 10.0.0.201, 10.0.0.202, 10.0.0.203 : ends in 90m, only Services of the owner may claim it',
    ],
    ['a loop with its last pass', 'every 10s failing 9s ago failed 5s 1 7 78s ago'],
    ['a pause', 'ends in 110m : control plane moves to new hosts ( jo )'],
    [
      'a finding with its Service',
      'web/checkout 10.0.0.37 the cluster IP [IPv4]: 10.0.0.37 for service web/checkout has already been allocated',
    ],
  ])('the page has %s', (_, words) => {
    expect(text).toContain(words);
  });

  test('the page shows that nothing needs attention, also for an empty table', () => {
    expect(textOf(renderFleetPage(aFleetStatus([])))).toContain('There is no cluster in this table yet.');
    expect(textOf(renderFleetPage(aFleetStatus([aClusterStatus()])))).toContain('Needs attention Nothing right now.');
  });

  test('the page names specs that cannot be read', () => {
    const unreadable = [{ name: 'prod-eu-9', message: 'a later version wrote it' }];

    expect(textOf(renderFleetPage(aFleetStatus([], { unreadable })))).toContain(
      'prod-eu-9 Its spec cannot be read: a later version wrote it',
    );
  });

  test('the page shows a problem once, and not in the details', () => {
    const message = 'shop/web and shop/web-copy have 10.0.0.77';
    const cluster = aClusterStatus({
      health: 'bad',
      attention: [{ level: 'bad', word: 'duplicate', message, next: 'recreate one' }],
      findings: [aFinding({ type: 'duplicate', message })],
    });

    for (const page of [renderFleetPage(aFleetStatus([cluster])), renderClusterPage(cluster, { atMs: STATUS_AT_MS })]) {
      expect(textOf(page).split(message)).toHaveLength(2);
      expect(textOf(page)).toContain('Findings 1 finding is shown above.');
    }
  });

  test('the page shows the writes of the next pass in enforce and the last changes', () => {
    const [loop, ...others] = loopsOf();
    const lastChange = { atMs: STATUS_AT_MS - 60_000, changes: ['updated Endpoints default/kubernetes: 192.0.2.1'] };
    const loops = [{ ...loop, lastChange, wouldWrite: ['create Namespace kube-public'] }, ...others];
    const cluster = aClusterStatus({ loops: loops as ClusterStatus['loops'] });

    expect(textOf(renderClusterPage(cluster, { atMs: STATUS_AT_MS }))).toContain(
      'Would write system-namespaces: would create Namespace kube-public Last changes system-namespaces, 60s ago : updated Endpoints default/kubernetes: 192.0.2.1',
    );
  });

  test('the page shows the pause of all clusters', () => {
    const pausedAll = { untilMs: STATUS_AT_MS + 60_000, reason: 'maintenance', by: 'jo' };

    expect(textOf(renderFleetPage(aFleetStatus([], { pausedAll })))).toContain(
      'All clusters are paused , ends in 60s: maintenance ( jo )',
    );
  });
});

describe('details that do not fit', () => {
  const clusters = manyClusters(1_000);

  test('a page that is too large omits the details of healthy clusters', () => {
    const page = renderFleetPage(aFleetStatus(clusters));

    for (const { name } of clusters.slice(0, 3)) expect(page).toContain(`<details id="c-${name}">`);
    expect(page).not.toContain('<details id="c-cluster-0999">');
  });

  test('a page in a file shows a command in place of omitted details', () => {
    const page = renderFleetPage(aFleetStatus(clusters));

    expect(textOf(page)).toMatch(
      /The details of \d+ more clusters are left out, to keep this page small: kbctl page NAME makes a page of one\./,
    );
    expect(page).toContain('<tr><th scope="row">cluster-0999<td');
  });

  test('a live page links to the omitted details', () => {
    const page = renderFleetPage(aFleetStatus(clusters), { live: { pollMs: 2_000 } });

    expect(page).toContain('<a href="clusters/cluster-0999">cluster-0999</a>');
    expect(page).toContain('<a href="#c-cluster-0000">cluster-0000</a>');
  });

  test('every link of the page has a target', () => {
    const page = renderFleetPage(aFleetStatus(clusters));
    const ids = new Set([...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id));

    for (const [, target] of page.matchAll(/href="#([^"]*)"/g)) expect(ids).toContain(target);
  });
});

test('each state of a cell has a pattern, and a word in the legend', () => {
  const cells = `${Object.keys(CELL_STATES).join('')}${'F'.repeat(57)}`;
  const range = { ...nodePorts(), map: { itemsPerCell: 1, first: '30000', cells } };
  const fills = { itemsPerCell: 16, first: '10.0.0.0', cells: 'UUUU', fill: [1, 5, 9, 16] };
  const page = renderClusterPage(aClusterStatus({ ranges: [range, { ...range, map: fills }] }), { atMs: STATUS_AT_MS });

  for (const [look, word] of Object.entries(LOOKS)) {
    expect(page).toContain(`<pattern id="p${look}"`);
    expect(page).toContain(`stroke="url(#p${look})"/></svg>${word} <b>`);
  }
});

test('a map has a text alternative', () => {
  expect(renderFleetPage(aFleetStatus([clustersOfEachKind()[0] ?? aClusterStatus()]))).toMatch(
    /aria-label="Map of the cluster IPs 10\.0\.0\.0\/24: \d+ of 254 in use \(\d+ %\), \d+ free, the first 16 are allocated last, 4 held, 3 may have leaked, 1 duplicate"/,
  );
});

test('the page loads nothing, and runs only its own script', () => {
  const page = renderFleetPage(aFleetStatus(clustersOfEachKind()), { live: { pollMs: 2_000 } });

  expect(page).toMatch(
    /content="default-src &#39;none&#39;; style-src &#39;sha256-[^;]+&#39;; script-src &#39;sha256-[^;]+&#39;; img-src data:; connect-src &#39;self&#39;; base-uri/,
  );
  expect([...page.matchAll(/\b(?:src|href)="(?!#|clusters\/|data:)[^"]*"/g)]).toEqual([]);
  expect(page).not.toMatch(/ style="| on\w+="/);
});

const lastPass = {
  startedAtMs: STATUS_AT_MS - 53_000,
  durationMs: 9,
  outcome: 'succeeded',
  mode: 'enforce',
  counts: {},
  findings: 0,
} as const;

test.each<[string, Partial<LoopStatus>, string]>([
  [
    'within the last minute, where it runs more often than it is recorded',
    { intervalSeconds: 15 },
    'within the last minute',
  ],
  ['when its leases show that it ran', { intervalSeconds: 15, lastRanAtMs: STATUS_AT_MS - 4_000 }, '4s ago'],
  ['when it was, where each pass is recorded', { intervalSeconds: 180 }, '53s ago'],
  ['when it was, where a loop is late', { intervalSeconds: 15, state: 'late' }, '53s ago'],
])('the last pass of a loop is shown %s', (_, fields, shown) => {
  const loop: LoopStatus = {
    loop: 'cluster-ip-repair',
    state: 'good',
    intervalSeconds: 15,
    failuresInARow: 0,
    lastPass,
    ...fields,
  };
  expect(String(clusterDetails(aClusterStatus({ loops: [loop] }), STATUS_AT_MS, 100_000))).toContain(
    `>${shown}</time> succeeded`,
  );
});
