import { beforeEach, expect, test } from '@jest/globals';
import { healthOf } from '../../lib/dispatch/fleet-figures.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { pauseAllClusters, updateCluster, withOwner, withPause } from '../../lib/table/cluster-registration.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import type { RunRecord } from '../../lib/table/run-records.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, aLoop, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { memoryQueue, queueEvent } from '../support/memory-queue.ts';
import { aRunRecord } from '../support/run-records.ts';

const MINUTE = 60_000;
const { intervalSeconds } = aClusterSpec();
const ENTRY = { name: 'demo', intervalSeconds, publishes: true, paused: undefined, owner: undefined, writtenAtMs: 0 };
const RECORD = aRunRecord(0, { counts: { activeLeases: 1 } });
const failing = (failuresInARow: number): RunRecord => ({ ...RECORD, outcome: 'failed', failuresInARow });

const at = (seconds: number) => ({ nowMs: seconds * 1000, pausedAll: undefined });
const all = (record: RunRecord) => Object.fromEntries(LOOPS.map((loop) => [loop, record]));

test.each([
  { name: 'no loop is overdue', seconds: 60, overdue: [] },
  // The kubernetes-service loop records its success only once a minute, so it is not overdue during that minute.
  { name: 'kubernetes-service is overdue', seconds: 91, overdue: ['kubernetes-service'] },
  { name: 'system-namespaces is overdue too', seconds: 241, overdue: ['system-namespaces', 'kubernetes-service'] },
  { name: 'every loop is overdue', seconds: 601, overdue: LOOPS },
])('$seconds s after the last record, $name', ({ seconds, overdue }) => {
  expect(healthOf(ENTRY, all(RECORD), at(seconds)).overdue).toEqual(overdue);
});

test('three failures in a row make a loop overdue', () => {
  expect(healthOf(ENTRY, all(failing(2)), at(30))).toMatchObject({ overdue: [], failing: LOOPS });
  expect(healthOf(ENTRY, all(failing(3)), at(30))).toMatchObject({ overdue: LOOPS, failing: LOOPS });
});

test('the time after which a cluster is overdue is counted from its registration or from the end of its last pause', () => {
  expect(healthOf({ ...ENTRY, writtenAtMs: 600_000 }, {}, at(660)).overdue).toEqual([]);
  expect(healthOf({ ...ENTRY, writtenAtMs: 600_000 }, {}, at(700)).overdue).toEqual(['kubernetes-service']);
  const paused = { untilMs: 590_000, reason: 'r', by: 'b' };
  expect(healthOf({ ...ENTRY, paused }, all(RECORD), at(600)).overdue).toEqual([]);
  expect(healthOf(ENTRY, all(RECORD), { nowMs: 600_000, pausedAll: paused }).overdue).toEqual([]);
});

const judge = (loop: Loop, record: Partial<RunRecord>, seconds = 10) =>
  healthOf(ENTRY, { [loop]: { ...RECORD, ...record } }, { nowMs: seconds * 1000, pausedAll: undefined });
const twoOwners = [{ type: 'twoOwners', message: 'm' }] as const;
const [CREDENTIALS_END, NINE_TENTHS] = [{ withCredentialsEnding: true }, { fullestRangePercent: 90 }];
const [WITH_LEASE, WITHOUT_LEASE] = [{ withoutLiveLease: false }, { withoutLiveLease: true }];

test.each<[string, object, Loop, Partial<RunRecord>]>([
  ['findings that require action', { withFindings: true }, 'cluster-ip-repair', { counts: { needAttention: 2 } }],
  ['two owners', { withTwoOwners: true }, 'kubernetes-service', { findings: twoOwners }],
  ['a credential that expires soon', CREDENTIALS_END, 'system-namespaces', { counts: { credentialsEnding: 1 } }],
  ['the usage of its fullest range', NINE_TENTHS, 'node-port-repair', { counts: { allocated: 9, capacity: 10 } }],
  ['no problem', { withFindings: false, withTwoOwners: false, fullestRangePercent: 0 }, 'cluster-ip-repair', {}],
  ['that it has no active lease', WITHOUT_LEASE, 'kubernetes-service', { counts: { activeLeases: 0 } }],
  ['no missing lease if its pass ended before it read the leases', WITH_LEASE, 'kubernetes-service', { counts: {} }],
])('the figures of a cluster report %s until the next pass', (_, expected, loop, record) => {
  expect(judge(loop, record)).toMatchObject(expected);
  expect(judge(loop, record, 3_600)).toMatchObject(expected);
});

let world: DispatchWorld;
const pause = () => ({ untilMs: world.clock.nowMs + MINUTE, reason: 'r', by: 'b' });
const withLease = () => aReport({ counts: { activeLeases: 1 } });
const figures = () =>
  Object.fromEntries(Object.entries(world.telemetry.counters).filter(([name]) => name.startsWith('clusters')));

beforeEach(() => {
  world = aDispatchWorld();
});

function invoke(event: unknown, overrides: Partial<Environment> = {}, run = aLoop(withLease, 'kubernetes-service')) {
  return world.dispatch(run.loop, event, { environment: { stack: 'prod', ...overrides } });
}

test('the figures count registered, paused and failing clusters and clusters without an active lease, and the log lists unhealthy clusters', async () => {
  await world.register(...['fails', 'paused', 'theirs', 'well', 'without'].map((name) => ({ name })));
  await updateCluster(world.table, 'theirs', withOwner('second'));
  await updateCluster(world.table, 'paused', withPause(pause()));
  await world.table.put({ cluster: '#clusters', key: 'broken', value: {}, schema: 1 }, undefined);
  const script = {
    well: withLease,
    fails: () => Promise.reject(new Error('no')),
    without: () => aReport({ counts: { activeLeases: 0 }, errors: [new Error('none')] }),
  };
  await invoke(world.schedule(), {}, aLoop(script, 'kubernetes-service'));
  expect(figures()).toEqual({
    clustersRegistered: 5,
    clustersJudged: 5,
    clustersOverdue: 0,
    clustersFailing: 3,
    clustersWithoutLiveLease: 1,
    clustersPaused: 1,
    clustersWithFindings: 0,
    clustersWithTwoOwners: 0,
    clustersWithCredentialsEnding: 0,
  });
  const failing = [`broken: ${LOOPS.join(', ')}`, 'fails: kubernetes-service', 'without: kubernetes-service'];
  expect(world.telemetry.logged('unhealthy clusters')).toEqual([
    { level: 'warn', overdue: undefined, failing, withoutLiveLease: ['without'] },
  ]);
});

test.each([
  ['is registered', []],
  ['is unhealthy', [{ name: 'well' }]],
])('while no cluster %s, the figures are recorded, and unhealthy clusters are not logged', async (_, clusters) => {
  await world.register(...clusters);
  await invoke(world.schedule());
  expect(figures()).toMatchObject({ clustersRegistered: clusters.length, clustersFailing: 0, clustersOverdue: 0 });
  expect(world.telemetry.lines.map(({ message }) => message)).toEqual(['invocation ended']);
});

test('during a pause of all clusters, no cluster has a pass, and the figures count all clusters as paused', async () => {
  await world.register({ name: 'a' }, { name: 'b' });
  await pauseAllClusters(world.table, pause());
  expect(await invoke(world.schedule())).toEqual({ passes: 0, failed: 0, skipped: 2 });
  expect(figures()).toMatchObject({ clustersRegistered: 2, clustersPaused: 2 });
});

test.each([
  { name: 'in another loop', event: () => world.schedule(), loop: 'system-namespaces' as const },
  { name: 'after a direct request', event: () => ({}), loop: 'kubernetes-service' as const },
])('the figures are not calculated $name', async ({ event, loop }) => {
  await world.register({ name: 'a' });
  await invoke(event(), {}, aLoop(withLease, loop));
  expect(figures()).toEqual({});
});

test('if the run records cannot be read, the figures are missing, and an error is logged', async () => {
  await world.register({ name: 'a' }, { name: 'b' });
  const list: typeof world.table.list = (cluster, prefix) =>
    prefix === 'runs/' ? Promise.reject(new TableError('Throttled', 'too much')) : world.table.list(cluster, prefix);
  expect(await invoke(world.schedule(), { table: () => ({ ...world.table, list }) })).toMatchObject({ failed: 0 });
  expect(figures()).toEqual({ clustersRegistered: 2 });
  const errors = ['Throttled: too much'];
  expect(world.telemetry.logged('fleet figures missing')).toEqual([{ level: 'error', errors }]);
});

test('if there are more than 250 clusters, the figures are calculated in parts, by queue messages in the middle of the minute', async () => {
  await world.register(...Array.from({ length: 501 }, (_, at) => ({ name: `c-${at}` })));
  await world.table.put({ cluster: '#clusters', key: 'broken', value: {}, schema: 1 }, undefined);
  await updateCluster(world.table, 'c-7', withPause(pause()));
  await world.table.put({ cluster: 'c-8', key: 'runs/node-port-repair', value: 7, schema: 1 }, undefined);
  const { queue, sent } = memoryQueue(() => world.clock.nowMs);
  const loop = aLoop(() => Promise.reject(new Error('no pass runs here')), 'kubernetes-service');
  await invoke(world.schedule(), { tickQueue: queue }, loop);
  expect(figures()).toMatchObject({ clustersRegistered: 502, clustersJudged: 1, clustersFailing: 1 });
  const parts = sent.filter(({ body }) => body.includes('"count"'));
  expect(parts.map(({ delaySeconds }) => delaySeconds)).toEqual([20, 26, 33]);
  const count = async (receives: number) => {
    for (const { body } of parts) {
      expect(await invoke(queueEvent(body, receives), { tickQueue: queue }, loop)).toMatchObject({ passes: 0 });
    }
  };
  world.clock.nowMs += 30_000;
  await count(1);
  const counted = { clustersRegistered: 502, clustersJudged: 502, clustersFailing: 2, clustersPaused: 1 };
  expect(figures()).toMatchObject(counted);
  await count(2);
  world.clock.nowMs += 60_000;
  await count(1);
  expect(figures()).toMatchObject(counted);
  expect(world.telemetry.counters).not.toHaveProperty('suspects');
});
