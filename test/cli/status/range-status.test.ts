import { expect, test } from '@jest/globals';
import { drawRange, type RangeBits } from '../../../cli/status/range-map.ts';
import { type TextRange, textRange } from '../../../cli/status/range-status.ts';
import { workOutStatus } from '../../../cli/status/work-out-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../../lib/spec/spec-ranges.ts';
import type { TableValue } from '../../../lib/table/key-value-table.ts';
import type { RunRecord } from '../../../lib/table/run-records.ts';
import { aCluster, aStoredRange, inputs, NOW_MS, recordsWith, saved, statusOf } from '../../support/a-fleet-status.ts';
import { found } from '../../support/found.ts';
import { made } from '../../support/ranges.ts';

const { primary, secondary, nodePorts } = RANGE_KEYS;

const counted = (counts: RunRecord['counts']) => recordsWith('cluster-ip-repair', { counts });
const first = (count: number) => Array.from({ length: count }, (_, n) => n);

const hold = { owner: 'team-a', takenUpBy: 'any', items: ['10.0.0.4', '10.0.0.5'] } as const;
const over = { ...hold, items: ['10.0.0.6'], untilMs: NOW_MS };
const strikes = { once: fromBits([1]), twice: fromBits([2, 200]) };
const duplicate = (item: string) => ({ type: 'duplicate' as const, message: `${item} is taken twice`, item });
const findings = ['10.0.0.1', '10.0.0.1', '10.9.9.9', 'fd00::1', '30000'].map(duplicate);

test('a range that was saved is shown with its figures, holds and cells', () => {
  const { ranges } = statusOf({
    cluster: aCluster({ allocator: 'table' }),
    ranges: [saved(primary, aStoredRange(first(7), { allocator: 'table', strikes, holds: [hold, over] }))],
    records: recordsWith('cluster-ip-repair', { findings }),
  });
  const range = { key: primary, title: 'cluster IPs', range: '10.0.0.0/24', allocator: 'table', ready: true };
  const figures = { capacity: 254, used: 7, free: 247, usedPercent: 2.7, reserved: 16 };
  const problems = { leaking: 2, held: 2, duplicates: 1, holds: [hold] };
  const map = { itemsPerCell: 1, first: '10.0.0.0', cells: `XDLLHHUU${'R'.repeat(9)}${'F'.repeat(238)}X` };
  expect(ranges).toEqual([{ ...range, savedAtMs: NOW_MS - 60_000, ...figures, ...problems, map }]);
});

test('the ranges of the spec are shown in a fixed order: cluster IPs, secondary cluster IPs, node ports', () => {
  const cidrs = [
    [nodePorts, '30000-32767'],
    [secondary, 'fd00::/112'],
    [primary, '10.0.0.0/24'],
  ] as const;
  const ranges = cidrs.map(([key, range]) => saved(key, aStoredRange([0], { range })));
  const titles = (cluster = aCluster()) => statusOf({ ranges, cluster }).ranges.map(({ title }) => title);
  const dualStack = aCluster({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] });
  expect(titles(dualStack)).toEqual(['cluster IPs', 'secondary cluster IPs', 'node ports']);
  expect(titles()).toEqual(['cluster IPs', 'node ports']);
});

test.each([
  ['under another generation of the spec', aStoredRange([0], { allocator: 'table', generation: 1 })],
  ['for another range', aStoredRange([0], { allocator: 'table', range: '10.0.0.0/25' })],
  ['as a usage bitmap', aStoredRange([0])],
])('the status shows a range as not ready for allocation if it was saved %s', (_, stored) => {
  const cluster = aCluster({ allocator: 'table' });
  const [range] = statusOf({ cluster, ranges: [saved(primary, stored)] }).ranges;
  expect(range).toMatchObject({ ready: false, range: stored.range });
});

test('a saved range that does not parse is reported, and other ranges are still shown', () => {
  const ports = saved(nodePorts, aStoredRange([0], { range: '30000-32767' }));
  const status = statusOf({ ranges: [saved(primary, aStoredRange([0], { range: 'anything' })), ports] });
  expect(status.ranges.map(({ key }) => key)).toEqual([nodePorts]);
  expect(status.unreadable).toEqual([expect.stringContaining('demo/ranges/serviceips')]);
  expect(status).toMatchObject({ health: 'unhealthy', attention: [{ word: 'unreadable' }] });
});

test('if a range has more used bits than items, the status shows no free items, and no cells beyond the last item', () => {
  const cluster = aCluster({ serviceClusterIPRanges: ['10.0.0.0/29'] });
  const ranges = [saved(primary, aStoredRange(first(10), { range: '10.0.0.0/29' }))];
  const [range] = statusOf({ cluster, ranges }).ranges;
  expect(range).toMatchObject({ used: 10, capacity: 6, free: 0 });
  expect(range?.map?.cells).toBe('XUUUUUUX');
});

const ofSecondary = { secondaryAllocated: 1, secondaryCapacity: 65_535 };
const counts = { allocated: 100, free: 154, capacity: 254, mayHaveLeaked: 3, held: 4, ...ofSecondary };

test('a range that was not saved is shown with the counts of the last pass', () => {
  const cluster = aCluster({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] });
  const { ranges } = statusOf({ cluster, records: counted(counts) });
  const figures = { capacity: 254, used: 100, free: 154, usedPercent: 39.3, reserved: 16 };
  const problems = { leaking: 3, held: 4, duplicates: 0, holds: [] };
  expect(ranges).toMatchObject([
    { key: primary, range: '10.0.0.0/24', allocator: 'apiserver', ...figures, ...problems },
    { key: secondary, used: 1, capacity: 65_535 },
  ]);
  expect(ranges[0]).not.toHaveProperty('map');
});

test('the status shows a range only if it was saved or a pass has counted its items', () => {
  expect(statusOf({ records: counted({ services: 3 }) }).ranges).toEqual([]);
});

test('if the table allocates, a range that was not saved is not ready; its readiness is unknown if the ranges were not read', () => {
  const cluster = aCluster({ allocator: 'table' });
  expect(statusOf({ cluster, records: counted(counts) }).ranges[0]).toMatchObject({ ready: false });
  const { ranges: _, ...brief } = inputs({ cluster, records: counted(counts) });
  expect(workOutStatus(brief, NOW_MS).ranges[0]).not.toHaveProperty('ready');
});

test.each([
  ['a usage bitmap of another range', aStoredRange([0], { range: '10.0.0.0/25' })],
  ['a range that was saved while the table allocated', aStoredRange([0], { allocator: 'table' })],
])('the status shows the counts of the last pass for a range and ignores %s', (_, stored) => {
  const [range] = statusOf({ ranges: [saved(primary, stored)], records: counted(counts) }).ranges;
  expect(range).toMatchObject({ range: '10.0.0.0/24', used: 100, allocator: 'apiserver' });
  expect(range?.map).toBeUndefined();
});

const wider = aCluster({ serviceClusterIPRanges: ['10.0.0.0/22'] });
const before = counted({ allocated: 100, capacity: 254 });

test.each([
  { name: 'wider', cluster: wider },
  { name: 'wider in a cluster with allocator: table', cluster: aCluster({ ...wider.spec, allocator: 'table' }) },
])('a range that the spec made $name is shown with its old CIDR and figures until a pass counts it', ({ cluster }) => {
  const [specRange] = cluster.spec.serviceClusterIPRanges;
  const ranges = [saved(primary, aStoredRange(first(100), { allocator: cluster.spec.allocator }))];
  const status = statusOf({ cluster, ranges, records: before });
  expect(status.ranges).toMatchObject([{ range: '10.0.0.0/24', specRange, used: 100, capacity: 254 }]);
});

test('a range that was changed in the spec is not shown if the saved ranges were not read', () => {
  const { ranges: _, ...brief } = inputs({ cluster: wider, records: before });
  expect(workOutStatus(brief, NOW_MS).ranges).toEqual([]);
});

test('a range that was changed in the spec is shown with the counts of a later pass, even if the new range is too large for a usage bitmap', () => {
  const cluster = aCluster({ serviceClusterIPRanges: ['10.0.0.0/8'] });
  const ranges = [saved(primary, aStoredRange(first(100)))];
  const [range] = statusOf({ cluster, ranges, records: counted({ allocated: 101, capacity: 2 ** 24 - 2 }) }).ranges;
  expect(range).toMatchObject({ range: '10.0.0.0/8', used: 101 });
  expect(range).not.toHaveProperty('specRange');
});

const cluster = aCluster({ serviceNodePortRange: '30000-30999' });
const full = (allocated: number) => recordsWith('node-port-repair', { counts: { allocated, capacity: 1000 } });

test.each([
  [800, 'good'],
  [801, 'warning'],
  [950, 'warning'],
  [951, 'unhealthy'],
])('a range with %d of 1000 ports in use is %s by the thresholds of the alarms', (allocated, health) => {
  expect(statusOf({ cluster, records: full(allocated) }).health).toBe(health);
});

test('the usage is rounded down to a tenth of a per cent, and shown with the number of free items', () => {
  const large = aCluster({ serviceClusterIPRanges: ['10.0.0.0/16'] });
  const records = counted({ allocated: 65_533, capacity: 65_534 });
  expect(statusOf({ cluster: large, records }).attention).toMatchObject([
    { word: 'almostFull', message: 'cluster IPs 10.0.0.0/16: 99.9 % in use, 1 free' },
  ]);
});

test('the status shows only one problem for a full range that also has a finding', () => {
  const message = 'nothing is free in the service CIDR 10.0.0.0/24, which has room for 254';
  const findings = [{ type: 'nothingFree', message }] as const;
  const fields = { counts: { allocated: 254, capacity: 254 }, findings };
  const { attention } = statusOf({ records: recordsWith('cluster-ip-repair', fields) });
  expect(attention.map(({ word }) => word)).toEqual(['nothingFree']);
});

const network = (name: string, cidr: string, used: number, rest: object = {}) => {
  return { name, cidr, ready: true, used, cells: '4'.repeat(used), ...rest };
};
const FULL = network('kubernetes', '10.5.0.0/28', 14);
const TWO = {
  sums: [
    { family: 'IPv4', networks: 2, used: 28, capacity: 28 },
    { family: 'IPv6', networks: 1, used: 3, capacity: Number.MAX_SAFE_INTEGER },
  ],
  networks: [FULL, network('kubernetes', 'fd00::/64', 3), network('more', '10.5.0.128/28', 14)],
};
const recorded = (state: TableValue, findings: RunRecord['findings'] = []) =>
  recordsWith('cluster-ip-repair', { state, findings });

test('the status shows each ServiceCIDR and the sum of all ServiceCIDRs of a family instead of the range of the spec', () => {
  const { ranges, attention } = statusOf({ records: recorded(TWO), ranges: [saved(primary, aStoredRange([0]))] });
  expect(ranges.map(({ title, range, used, capacity }) => [title, range, used, capacity])).toEqual([
    ['cluster IPs', '2 ServiceCIDRs of IPv4', 28, 28],
    ['cluster IPs of ServiceCIDR kubernetes', '10.5.0.0/28', 14, 14],
    ['cluster IPs of ServiceCIDR more', '10.5.0.128/28', 14, 14],
    ['secondary cluster IPs', 'fd00::/64', 3, Number.MAX_SAFE_INTEGER],
  ]);
  expect(ranges.some((range) => 'specRange' in range)).toBe(false);
  const cells = expect.stringMatching(/^UUUF+$/);
  expect(ranges[3]?.map).toMatchObject({ itemsPerCell: 2 ** 56, first: 'fd00::', cells });
  const message = 'cluster IPs 2 ServiceCIDRs of IPv4: 100 % in use, 0 free';
  expect(attention).toMatchObject([{ word: 'almostFull', message }]);
});

test('a full ServiceCIDR is not a problem while another ServiceCIDR has free addresses', () => {
  const sums = [{ family: 'IPv4', networks: 2, used: 14, capacity: 28 }];
  const networks = [FULL, network('more', '10.5.0.128/28', 0, { ready: false })];
  const { ranges, attention } = statusOf({ records: recorded({ sums, networks }) });
  expect(attention).toEqual([]);
  expect(ranges.map(({ usedPercent, part, ready }) => [usedPercent, part, ready])).toEqual([
    [50, undefined, undefined],
    [100, true, undefined],
    [0, true, false],
  ]);
});

test('the status of a ServiceCIDR shows the duplicates and leaked IPAddresses that the last pass found', () => {
  const finding = (type: 'duplicate' | 'leakedRecord', item: string) => ({ type, item, message: item });
  const duplicates = ['10.5.0.3', '10.9.0.1'].map((item) => finding('duplicate', item));
  const findings = [...duplicates, finding('leakedRecord', '10.5.0.4')];
  const sums = [{ family: 'IPv4', networks: 1, used: 2, capacity: 14 }];
  const state = { sums, networks: [network('kubernetes', '10.5.0.0/28', 2, { cells: '000440' })] };
  const [range] = statusOf({ records: recorded(state, findings) }).ranges;
  expect(range).toMatchObject({ duplicates: 1, leaking: 1, map: { cells: `XFFDU${'F'.repeat(10)}X` } });
});

test('ServiceCIDRs are not shown if the table allocates', () => {
  const cluster = aCluster({ allocator: 'table' });
  expect(statusOf({ cluster, records: recorded(TWO) }).ranges).toEqual([]);
});

const layout = (text: string) => made(textRange(text.includes('/') ? primary : nodePorts, text));

const drawn = (range: TextRange, given: RangeBits) => found(drawRange(range, given));

function bits(items: Partial<Record<'used' | 'held' | 'leaking' | 'duplicates', readonly number[]>> = {}): RangeBits {
  const { used = [], held = [], leaking = [], duplicates = [] } = items;
  return { U: fromBits(used), H: fromBits(held), L: fromBits(leaking), D: fromBits(duplicates) };
}

test.each([
  { text: '10.0.0.8/29', first: '10.0.0.8', itemsPerCell: 1, cells: 'XFFFFFFX' },
  { text: '10.1.0.0/22', first: '10.1.0.0', itemsPerCell: 1, cells: `X${'R'.repeat(64)}${'F'.repeat(958)}X` },
  { text: '10.1.0.0/16', first: '10.1.0.0', itemsPerCell: 64, cells: `${'R'.repeat(5)}${'F'.repeat(1019)}` },
  { text: 'fd00::/120', first: 'fd00::', itemsPerCell: 1, cells: `X${'R'.repeat(16)}${'F'.repeat(239)}` },
  { text: '30000-32767', first: '30000', itemsPerCell: 4, cells: `${'R'.repeat(22)}${'F'.repeat(670)}` },
  { text: '80', first: '80', itemsPerCell: 1, cells: 'F' },
])('the map of $text begins at $first, with $itemsPerCell items per cell', ({ text, first, itemsPerCell, cells }) => {
  const map = drawn(layout(text), bits());
  expect(map).toMatchObject({ first, itemsPerCell, cells });
  expect(map.fill).toEqual(itemsPerCell === 1 ? undefined : Array.from(cells, () => 0));
});

test('a cell of one item with several states shows the worst state', () => {
  const all = { used: [0, 1, 2, 3], held: [1, 2, 3], leaking: [2, 3], duplicates: [3] };
  expect(drawn(layout('30000-30005'), bits(all)).cells).toBe('UHLDFF');
});

test('a cell of several items shows the worst state of these items, and how many of them are in use', () => {
  const map = drawn(layout('10.1.0.0/16'), bits({ used: [500, 501, 502, 700], leaking: [502] }));
  expect([map.cells[7], map.cells[10]]).toEqual(['L', 'U']);
  expect([map.fill?.[7], map.fill?.[10], map.fill?.[11]]).toEqual([3, 1, 0]);
});

test('a range without a usable item has no cells', () => {
  for (const text of ['10.0.0.0/31', '']) expect(drawRange(layout(text), bits())).toBeUndefined();
});
