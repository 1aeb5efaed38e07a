import { describe, expect, test } from '@jest/globals';
import { refused } from '../../lib/allocator/refusal.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { NODE_PORTS, nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { repairPass } from '../../lib/loops/repair.ts';
import type { RepairKind } from '../../lib/loops/repair-gather.ts';
import type { HoldTerms } from '../../lib/range/hold.ts';
import type { ClaimedRange } from '../../lib/repair/claims.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { countsByType, listing, withAddresses, withNodePorts } from '../repair/services.ts';
import type { SpecFields } from '../support/a-cluster-spec.ts';
import { found } from '../support/found.ts';
import { PassWorld } from '../support/pass-world.ts';
import { HOLD_END_MARGIN_MS } from '../support/ranges.ts';

const { primary: PRIMARY, secondary: SECONDARY, nodePorts: NODE_PORT_KEY } = RANGE_KEYS;
const RANGE = '10.0.0.0/24';
const ANY: HoldTerms = { owner: 'team-a', takenUpBy: 'any' };
const THROTTLED = new TableError('Throttled', 'test error');
const SERVICES = [withAddresses('a', '10.0.0.5'), withAddresses('b', '10.0.0.6'), withNodePorts('c', 30_001, 30_002)];

const tableWorld = (spec: SpecFields = {}) => new PassWorld({ allocator: 'table', ...spec });

test('the list of Services is read after the ranges', async () => {
  const cluster = tableWorld({ serviceClusterIPRanges: [RANGE, 'fd00::/112'] });
  const kubernetes = listing(() => {
    expect(cluster.tableCalls).toEqual(['get', 'get']);
    return [];
  });
  expect(await cluster.pass(clusterIpRepair, { kubernetes })).toMatchObject({ counts: { services: 0 } });
});

test.each([
  { loop: clusterIpRepair, key: PRIMARY, message: 'unable to refresh the service IP block: it broke off' },
  { loop: nodePortRepair, key: NODE_PORT_KEY, message: 'unable to refresh the port block: it broke off' },
])('if a list is incomplete, $loop.id fails as upstream does, and saves nothing', async ({ loop, key, message }) => {
  const cluster = tableWorld();
  const cause = new ClusterError('Unavailable', 'it broke off');
  const kubernetes = listing(async function* list() {
    yield* [withAddresses('s', '10.0.0.5'), withNodePorts('t', 30_001)];
    throw cause;
  });
  await expect(cluster.pass(loop, { kubernetes })).rejects.toMatchObject({ code: 'Unavailable', message, cause });
  expect(await cluster.stored(key)).toBeUndefined();
});

test.each([
  { loop: clusterIpRepair, tried: [PRIMARY], what: 'service IP allocations' },
  { loop: nodePortRepair, tried: [NODE_PORT_KEY], what: 'port allocations' },
])('if $loop.id cannot save a range, the pass has the same error as upstream', async ({ loop, tried, what }) => {
  const cluster = tableWorld({ serviceClusterIPRanges: [RANGE, 'fd00::/112'] }).list(...SERVICES);
  const keys: string[] = [];
  const put: KeyValueTable['put'] = ({ key }) => {
    keys.push(key);
    return Promise.reject(THROTTLED);
  };
  const report = await cluster.pass(loop, { table: { ...cluster.table, put } });
  const message = `unable to persist the updated ${what}: test error`;
  expect(report.errors).toMatchObject([{ code: 'Throttled', message, cause: THROTTLED }]);
  expect(countsByType(report)).toEqual({ repair: 2 });
  expect(keys).toEqual(tried);
});

test.each([
  { loop: clusterIpRepair, cause: THROTTLED, message: 'unable to refresh the service IP block: test error' },
  { loop: nodePortRepair, cause: THROTTLED, message: 'unable to refresh the port allocations: test error' },
  { loop: clusterIpRepair, cause: new RangeError('odd'), message: 'unable to refresh the service IP block: odd' },
])('a pass of $loop.id that cannot read a range fails as upstream: $cause', async ({ loop, message, cause }) => {
  const cluster = tableWorld();
  const table: KeyValueTable = { ...cluster.table, get: () => Promise.reject(cause) };
  const code = cause === THROTTLED ? { code: 'Throttled' } : {};
  await expect(cluster.pass(loop, { table })).rejects.toMatchObject({ ...code, message, cause });
});

/** Returns a range that refuses every claim after the first. */
function failing(range: ClaimedRange): ClaimedRange {
  let claims = 0;
  return { ...range, claim: (item, by) => (claims++ > 0 ? refused('NotReady', 'test error') : range.claim(item, by)) };
}

test('a pass saves nothing if an allocator refuses an item with NotReady', async () => {
  const cluster = tableWorld().list(...SERVICES);
  const enterClaims: RepairKind['enterClaims'] = (ranges) => NODE_PORTS.enterClaims(ranges.map(failing));
  const report = await repairPass({ ...NODE_PORTS, enterClaims }, cluster.context());
  expect(report.errors).toMatchObject([{ code: 'Unknown' }]);
  expect(countsByType(report)).toEqual({ repair: 1, unknown: 1 });
  expect(await cluster.stored(NODE_PORT_KEY)).toBeUndefined();
});

test('a pass does not report an item that was allocated for a Service after the pass read the range', async () => {
  const cluster = tableWorld().list(...SERVICES);
  await repairPass(NODE_PORTS, cluster.context());
  const newest = found(await cluster.stored(NODE_PORT_KEY));
  await cluster.store(NODE_PORT_KEY, { ...newest, data: new Uint8Array(0) });
  let reads = 0;
  const get: KeyValueTable['get'] = async (name, item) => {
    const old = await cluster.table.get(name, item);
    if (item === NODE_PORT_KEY && ++reads === 1) await cluster.store(NODE_PORT_KEY, newest);
    return old;
  };
  expect((await repairPass(NODE_PORTS, cluster.context({ table: { ...cluster.table, get } }))).findings).toEqual([]);
  expect(await cluster.stored(NODE_PORT_KEY)).toEqual(newest);
});

const garbage = { range: 'garbage', data: Uint8Array.of(4) };
const advice =
  'is left unchanged: restore its last good content, or remove it, and the next pass rebuilds it from the Services';

test.each([
  { loop: clusterIpRepair, key: PRIMARY, why: 's for family:IPv4 with error:invalid CIDR address: garbage' },
  { loop: nodePortRepair, key: NODE_PORT_KEY, why: ': ' },
])('if the range of a snapshot is invalid, $loop.id fails and changes nothing', async ({ loop, key, why }) => {
  const cluster = tableWorld().list(withAddresses('s', '10.0.0.5'), withNodePorts('t', 30_000));
  await cluster.store(key, garbage);
  const before = await cluster.table.get('demo', key);
  const report = await cluster.pass(loop);
  const message = expect.stringContaining(`unable to rebuild allocator from snapshot${why}`);
  const errors = [{ code: 'CorruptSnapshot', message }];
  expect(report).toMatchObject({ changes: [], findings: [{ type: 'corruptSnapshot' }], errors });
  expect(report.errors[0]?.message).toContain(`${key} ${advice}`);
  expect(await cluster.table.get('demo', key)).toEqual(before);
});

test.each(['table', 'apiserver'] as const)('allocator %s: a pass fails if a range is invalid', async (allocator) => {
  const cluster = new PassWorld({ allocator, serviceNodePortRange: '9-1' });
  await cluster.store(NODE_PORT_KEY, { range: '30000-32767', data: fromBits([1]) });
  const message = expect.stringMatching(/^unable to create port allocator: end port cannot be less/);
  await expect(cluster.pass(nodePortRepair)).rejects.toMatchObject({ code: 'BadRange', message });
});

test('if the snapshot of one family is corrupt, a pass writes the range of neither family', async () => {
  const cluster = tableWorld({ serviceClusterIPRanges: [RANGE, 'fd00::/112'] });
  await cluster.store(SECONDARY, garbage);
  expect((await cluster.pass(clusterIpRepair)).errors[0]?.message).toContain('for family:IPv6 with error');
  expect(await cluster.stored(PRIMARY)).toBeUndefined();
});

test('an audit does not replace a corrupt snapshot, and still checks the Services', async () => {
  const cluster = new PassWorld().list(withAddresses('s', '10.1.0.5'));
  const text = { cluster: 'demo', key: PRIMARY, value: 'half a bitmap', schema: 1 };
  await cluster.table.put(text, undefined);
  const report = await cluster.pass(clusterIpRepair);
  expect(countsByType(report)).toEqual({ outOfRange: 1, corruptSnapshot: 1 });
  expect(report.errors).toMatchObject([{ code: 'Corrupt' }]);
});

test('a pass ends without a write if a range was saved under a newer spec', async () => {
  const cluster = tableWorld();
  await cluster.store(PRIMARY, { range: RANGE, data: fromBits([1]), generation: 2 });
  const before = await cluster.table.get('demo', PRIMARY);
  const why = 'was saved under generation 2 of the cluster spec, but this pass has generation 1';
  const error = { code: 'OlderSpec', message: expect.stringContaining(why) };
  await expect(cluster.pass(clusterIpRepair)).rejects.toMatchObject(error);
  expect(await cluster.table.get('demo', PRIMARY)).toEqual(before);
});

test('the usage bitmap of an audit is ignored, and the range is initialised only from the Services', async () => {
  const cluster = tableWorld().list(withAddresses('s', '10.0.0.5'));
  await cluster.store(PRIMARY, { range: RANGE, data: fromBits([1, 4]), allocator: 'apiserver' });
  const report = await cluster.pass(clusterIpRepair);
  expect(countsByType(report)).toEqual({ repair: 1 });
  expect(await cluster.stored(PRIMARY)).toMatchObject({ data: fromBits([4]), allocator: 'table' });
});

test('if a snapshot contains no range, a pass applies the bitmap of the snapshot to the range of the spec', async () => {
  const cluster = tableWorld().list(withAddresses('s', '10.0.0.5'));
  await cluster.store(PRIMARY, { range: '', data: fromBits([4]) });
  const report = await cluster.pass(clusterIpRepair);
  expect([report.findings, report.errors]).toEqual([[], []]);
  expect(await cluster.stored(PRIMARY)).toMatchObject({ range: RANGE, data: fromBits([4]) });
});

/** Returns a Kubernetes client that runs `meanwhile` when the list of Services starts. */
function whileListing(cluster: PassWorld, meanwhile: () => Promise<void>) {
  return listing(async function* list() {
    await meanwhile();
    yield* cluster.services ?? [];
  });
}

describe('a range that is written while the Services are listed', () => {
  test('the pass adds the addresses of the listed Services to the newer range, and keeps addresses that were allocated after the pass had read the range', async () => {
    const cluster = tableWorld();
    await cluster.pass(clusterIpRepair);
    cluster.services = [withAddresses('s', '10.0.0.5')];
    const kubernetes = whileListing(cluster, () => cluster.store(PRIMARY, { range: RANGE, data: fromBits([20]) }));
    const report = await cluster.pass(clusterIpRepair, { kubernetes });
    expect(report).toMatchObject({ errors: [], changes: [expect.stringMatching(/^merged ranges\/serviceips/)] });
    expect((await cluster.stored(PRIMARY))?.data).toEqual(fromBits([4, 20]));
  });

  test('a pass reports no change if another pass has saved the same range during this pass', async () => {
    const cluster = tableWorld().list(withAddresses('s', '10.0.0.5'));
    await cluster.store(PRIMARY, { range: RANGE, data: fromBits([1]) });
    const kubernetes = whileListing(cluster, async () => void (await cluster.pass(clusterIpRepair)));
    expect(await cluster.pass(clusterIpRepair, { kubernetes })).toMatchObject({ errors: [], changes: [] });
    expect((await cluster.stored(PRIMARY))?.data).toEqual(fromBits([1, 4]));
  });

  test('a range that was saved under a newer spec stays unchanged', async () => {
    const cluster = tableWorld().list(withAddresses('s', '10.0.0.5'));
    const other = { range: RANGE, data: fromBits([20]), generation: 2 };
    const kubernetes = whileListing(cluster, () => cluster.store(PRIMARY, other));
    const report = await cluster.pass(clusterIpRepair, { kubernetes });
    const errors = [{ code: 'OlderSpec', message: expect.stringContaining('nothing was written') }];
    expect(report).toMatchObject({ changes: [], errors });
    expect(await cluster.stored(PRIMARY)).toMatchObject(other);
  });

  test('a range that another writer removes during the pass is not created again', async () => {
    const cluster = tableWorld();
    await cluster.store(PRIMARY, { range: RANGE, data: fromBits([20]) });
    const kubernetes = whileListing(cluster, async () => cluster.table.remove('demo', PRIMARY));
    expect((await cluster.pass(clusterIpRepair, { kubernetes })).errors).toMatchObject([{ code: 'Contended' }]);
    expect(await cluster.stored(PRIMARY)).toBeUndefined();
  });
});

test('a pass in mode observe does not change a range that another writer wrote while the Services were listed', async () => {
  const cluster = tableWorld({ mode: 'observe' });
  const over = { ...ANY, items: ['10.0.0.3'], untilMs: cluster.nowMs - HOLD_END_MARGIN_MS };
  await cluster.store(PRIMARY, { range: RANGE, data: fromBits([1, 2]), holds: [over] });
  const other = { range: RANGE, data: fromBits([1, 2, 20]), holds: [over] };
  cluster.services = [withAddresses('s', '10.0.0.5')];
  const kubernetes = whileListing(cluster, () => cluster.store(PRIMARY, other));
  expect(await cluster.pass(clusterIpRepair, { kubernetes })).toMatchObject({ changes: [], errors: [] });
  expect(cluster.wouldWrite).toEqual(['save ranges/serviceips: 3 taken in 10.0.0.0/24, 1 freed, 1 without a Service']);
  expect(await cluster.stored(PRIMARY)).toMatchObject(other);
});

test('a pass does not free a leak with two strikes if the previous pass ran in mode observe', async () => {
  const cluster = tableWorld();
  await cluster.store(PRIMARY, { range: RANGE, data: fromBits([20]) });
  await cluster.pass(clusterIpRepair);
  await cluster.pass(clusterIpRepair);
  await cluster.pass(clusterIpRepair, { previous: { observed: true } });
  expect((await cluster.stored(PRIMARY))?.data).toEqual(fromBits([20]));
});

test('a pass counts the held items of each range, and reports how many items it freed because their holds had expired', async () => {
  const cluster = tableWorld({ serviceClusterIPRanges: [RANGE, 'fd00::/112'] });
  const over = { ...ANY, untilMs: cluster.nowMs - HOLD_END_MARGIN_MS };
  const holdOn = (item: string, terms = ANY) => ({ ...terms, items: [item] });
  const holds = [holdOn('10.0.0.1'), holdOn('10.0.0.2', over)];
  await cluster.store(PRIMARY, { range: RANGE, data: fromBits([0, 1, 2]), holds });
  await cluster.store(SECONDARY, { range: 'fd00::/112', data: fromBits([0]), holds: [holdOn('fd00::1')] });
  cluster.services = [withAddresses('a', '10.0.0.3', 'fd00::1')];
  expect(await cluster.pass(clusterIpRepair)).toMatchObject({
    changes: [
      'saved ranges/serviceips: 2 of 254 taken in 10.0.0.0/24, 1 held, 1 freed after their hold',
      'saved ranges/secondaryserviceips: 1 of 65535 taken in fd00::/112',
    ],
    findings: [],
    counts: { held: 1, holdsEnded: 1, secondaryHeld: 0, secondaryHoldsEnded: 0, leaks: 0 },
  });
  expect((await cluster.stored(SECONDARY))?.holds).toEqual([]);
});

test('if a spec reverses the order of the families, a pass moves addresses without a Service, and all holds, to the other range', async () => {
  const cluster = tableWorld({ serviceClusterIPRanges: ['fd00::/112', RANGE] });
  cluster.rangesGeneration = 2;
  const holdOn = (item: string) => [{ ...ANY, items: [item] }];
  const [ofIPv4, ofIPv6] = [
    { range: RANGE, data: fromBits([0, 8]), holds: holdOn('10.0.0.1') },
    { range: 'fd00::/112', data: fromBits([0, 6]), holds: holdOn('fd00::1') },
  ];
  await cluster.store(PRIMARY, ofIPv4);
  await cluster.store(SECONDARY, ofIPv6);
  expect(countsByType(await cluster.pass(clusterIpRepair))).toEqual({ mayHaveLeaked: 2 });
  expect(await cluster.stored(PRIMARY)).toMatchObject({ ...ofIPv6, generation: 2 });
  expect(await cluster.stored(SECONDARY)).toMatchObject({ ...ofIPv4, generation: 2 });
});

test('a pass ends a hold only if the hold had expired before the pass read the range', async () => {
  const cluster = tableWorld();
  const holds = [{ ...ANY, untilMs: cluster.nowMs + 1 - HOLD_END_MARGIN_MS, items: ['30001'] }];
  await cluster.store(NODE_PORT_KEY, { range: '30000-32767', data: fromBits([1]), holds });
  const kubernetes = whileListing(cluster, async () => {
    cluster.nowMs += 10;
  });
  await cluster.pass(nodePortRepair, { kubernetes });
  expect(await cluster.stored(NODE_PORT_KEY)).toMatchObject({ data: fromBits([1]), holds });
  await cluster.pass(nodePortRepair);
  expect(await cluster.stored(NODE_PORT_KEY)).toMatchObject({ data: new Uint8Array(0), holds: [] });
});
