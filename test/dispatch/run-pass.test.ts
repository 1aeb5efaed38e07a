import { expect, test } from '@jest/globals';
import type { EventDraft, Finding } from '../../lib/cluster/finding.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { LoopDefinition, PassContext, PassReport } from '../../lib/loops/pass.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { rangeContent } from '../../lib/table/ranges.ts';
import { aClusterSpec, aHost } from '../support/a-cluster-spec.ts';
import { aDispatchWorldOf, aLoop, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { storedRange } from '../support/ranges.ts';

const MINUTE = 60_000;

/** Runs a forced pass for the cluster `demo`. @returns its context */
async function pass(
  world: DispatchWorld,
  run: (context: PassContext) => Promise<PassReport> | PassReport,
  id: LoopDefinition['id'] = 'system-namespaces',
  environment: Partial<Environment> = {},
): Promise<PassContext | undefined> {
  const { loop, contexts } = aLoop(run, id);
  await world.dispatch(loop, { force: true }, { environment });
  return contexts[0];
}

const nothing = () => aReport();
const never = new AbortController().signal;
const trouble = () => Promise.reject(new ClusterError('Unavailable', 'connection refused'));

const draft: EventDraft = {
  regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: 'u-1' },
  reason: 'PortNotAllocated',
  action: 'PortAllocation',
  note: 'Port 30001 is not allocated; repairing',
};
const message = 'the node port 30001 is not allocated; repairing';
const found: Finding = { type: 'repair', message, item: '30001', service: 'shop/web', event: draft };

test('the run record contains the number of findings that require action, and a failed pass does not change that number', async () => {
  const world = await aDispatchWorldOf({});
  const findings = [{ type: 'duplicate', message: 'm' } as const];
  const unlisted = new Map([['outOfRange', 2] as const]);
  await pass(world, () => aReport({ findings, unlisted, counts: { allocated: 3, capacity: 4, leaking: 1 } }));
  expect((await world.recordOf('demo'))?.counts).toEqual({ allocated: 3, capacity: 4, leaking: 1, needAttention: 3 });
  await pass(world, trouble);
  expect((await world.recordOf('demo'))?.counts).toEqual({ allocated: 3, capacity: 4, needAttention: 3 });
  await pass(world, nothing);
  expect((await world.recordOf('demo'))?.counts).toEqual({});
});

test('after a pass in mode observe, `previous.observed` stays true until a pass in mode enforce has succeeded', async () => {
  const world = await aDispatchWorldOf({ mode: 'observe' });
  await pass(world, nothing);
  await registerCluster(world.table, aClusterSpec({ mode: 'enforce' }));
  expect((await pass(world, trouble))?.previous?.observed).toBe(true);
  expect((await pass(world, nothing))?.previous?.observed).toBe(true);
  expect((await pass(world, nothing))?.previous?.observed).toBe(false);
});

const RANGE = rangeContent(storedRange({ range: '10.0.0.0/24', data: new Uint8Array(0) }));
const writes = async ({ kubernetes, table }: PassContext) => {
  await kubernetes.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-public' } });
  await table.put({ ...RANGE, cluster: 'demo', key: 'ranges/serviceips' }, undefined);
  await table.put({ cluster: 'demo', key: 'masterleases', value: 1, schema: 1 }, undefined);
  return aReport({ changes: ['took lease 10.0.0.1'], wouldWrite: ['remove 10.0.0.2 from the endpoints'] });
};

test('a pass in mode observe changes neither the cluster nor the ranges, and reports each write that it would make', async () => {
  const world = await aDispatchWorldOf({ mode: 'observe', allocator: 'table' });
  await pass(world, writes);
  expect(world.cluster().writes).toEqual([]);
  const keys = (await world.table.list('demo', '')).map(({ key }) => key);
  expect(keys).toEqual(['masterleases', 'runs/system-namespaces']);
  const changes = ['took lease 10.0.0.1'];
  const saves = 'save ranges/serviceips: 0 taken in 10.0.0.0/24';
  const wouldWrite = ['create Namespace kube-public', saves, 'remove 10.0.0.2 from the endpoints'];
  expect(world.telemetry.logged('pass succeeded')).toMatchObject([{ mode: 'observe', wouldWrite, changes }]);
  expect(await world.recordOf('demo')).toMatchObject({ wouldWrite, lastChange: { changes } });
});

test('an observing pass writes no log line if it would make the same writes as the previous pass', async () => {
  const world = await aDispatchWorldOf({ mode: 'observe' });
  const create = (name: string) => async (context: PassContext) => {
    await context.kubernetes.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    return aReport();
  };
  const logged: number[] = [];
  for (const name of ['kube-public', 'kube-public', 'kube-system']) {
    await pass(world, create(name));
    logged.push(world.telemetry.logged('pass succeeded').length);
  }
  expect(logged).toEqual([1, 1, 2]);
});

test('an observing pass writes no events, and the first pass in mode enforce writes the events of the findings that still exist', async () => {
  const world = await aDispatchWorldOf({ mode: 'observe' });
  const finds = () => pass(world, () => aReport({ findings: [found] }), 'node-port-repair');
  for (let observing = 0; observing < 3; observing++) await finds();
  expect(world.cluster().writes).toEqual([]);
  await registerCluster(world.table, aClusterSpec({ mode: 'enforce' }));
  await finds();
  const events = () => world.cluster().port.list('Event', undefined);
  expect(await events()).toMatchObject([{ reason: 'PortNotAllocated', series: { count: 4 } }]);
  world.cluster().writes.length = 0;
  await finds();
  expect(world.cluster().writes).toEqual([]);
});

test('a finding is logged, added to the metrics and recorded, and written as an event that counts how often the finding was seen', async () => {
  const world = await aDispatchWorldOf({});
  await pass(world, () => aReport({ findings: [found] }), 'node-port-repair');
  expect(await world.cluster().port.list('Event', undefined)).toMatchObject([
    { kind: 'Event', reason: 'PortNotAllocated', note: draft.note, reportingInstance: 'test' },
  ]);
  expect(world.telemetry.counters).toMatchObject({ 'apiserver_nodeport_repair_port_errors_total{type=repair}': 1 });
  const findings = [`repair: ${message}`];
  expect(world.telemetry.logged('pass succeeded')).toMatchObject([{ level: 'warn', findings, eventErrors: undefined }]);
  const record = await world.recordOf('demo', 'node-port-repair');
  expect(record?.findings).toEqual([{ type: 'repair', message, item: '30001', service: 'shop/web' }]);
  expect(record?.findingCounts).toBeUndefined();
  await pass(world, () => aReport({ findings: [found] }), 'node-port-repair');
  const { events = {} } = (await world.recordOf('demo', 'node-port-repair')) ?? {};
  expect(Object.values(events)).toMatchObject([{ count: 2 }]);
});

test('the record and the metrics count all findings, including findings that the report or the record does not list', async () => {
  const world = await aDispatchWorldOf({});
  const unlisted = new Map([['invalid', 7] as const, ['repair', 3] as const]);
  const findings = Array.from({ length: 25 }, () => found);
  await pass(world, () => aReport({ findings, unlisted }), 'cluster-ip-repair');
  const record = await world.recordOf('demo', 'cluster-ip-repair');
  expect(record?.findings).toHaveLength(20);
  expect(record?.findingCounts).toEqual({ invalid: 7, repair: 28 });
  expect(world.telemetry.counters).toMatchObject({
    'apiserver_clusterip_repair_ip_errors_total{type=repair}': 28,
    'apiserver_clusterip_repair_ip_errors_total{type=invalid}': 7,
  });
});

test('a finding is recorded although its event could not be written', async () => {
  const refuse = () => Promise.reject(new ClusterError('Forbidden', 'events is forbidden'));
  const world = await aDispatchWorldOf({});
  const kubernetes = { ...world.cluster().port, create: refuse };
  const connect = world.connecting({ kubernetes });
  await pass(world, () => aReport({ findings: [found] }), 'node-port-repair', { connect });
  expect(await world.recordOf('demo', 'node-port-repair')).toMatchObject({ outcome: 'succeeded', events: {} });
  expect(world.telemetry.lines[0]?.fields['eventErrors']).toEqual(['Forbidden: events is forbidden']);
});

test('the run record contains the number of failures in a row and the time of the last success', async () => {
  const world = await aDispatchWorldOf({});
  await pass(world, nothing);
  const succeededAtMs = world.clock.nowMs;
  for (const failures of [1, 2]) {
    world.clock.nowMs += MINUTE;
    await pass(world, trouble);
    expect(await world.recordOf('demo')).toMatchObject({ failuresInARow: failures, lastSuccessAtMs: succeededAtMs });
  }
  world.clock.nowMs += MINUTE;
  await pass(world, nothing);
  expect(await world.recordOf('demo')).toMatchObject({ failuresInARow: 0, lastSuccessAtMs: world.clock.nowMs });
});

test('a pass fails if its run record cannot be written', async () => {
  const world = await aDispatchWorldOf({});
  const put = () => Promise.reject(new TableError('AccessDenied', 'not allowed to write'));
  await pass(world, nothing, 'system-namespaces', { table: () => ({ ...world.table, put }) });
  expect(world.telemetry.counters).toMatchObject({ passes: 1, failures: 1 });
  expect(world.telemetry.lines[0]?.fields['errors']).toEqual(['AccessDenied: not allowed to write']);
});

const quiet = () => aReport({ counts: { activeLeases: 3 } });

/** Runs these passes, ten seconds apart. Returns the start of the recorded pass after each of them. */
async function recordedAfter(...runs: (() => PassReport | Promise<PassReport>)[]): Promise<(number | undefined)[]> {
  const world = await aDispatchWorldOf({});
  const startMs = world.clock.nowMs;
  const recorded: (number | undefined)[] = [];
  for (const run of runs) {
    await pass(world, run, 'kubernetes-service');
    const record = await world.recordOf('demo', 'kubernetes-service');
    recorded.push(record && (record.startedAtMs - startMs) / 1000);
    world.clock.nowMs += 10_000;
  }
  return recorded;
}

test('the record of the kubernetes-service loop is written once a minute while nothing changes', async () => {
  expect(await recordedAfter(...Array.from({ length: 8 }, () => quiet))).toEqual([0, 0, 0, 0, 0, 0, 60, 60]);
});

test.each<[string, string, () => PassReport | Promise<PassReport>, number]>([
  ['changes something', 'does not write it', () => aReport({ changes: ['published 10.0.0.1'] }), 10],
  ['has a finding', 'writes it again', () => aReport({ findings: [{ type: 'oddProbe', message: 'teapot' }] }), 20],
  ['fails', 'writes it again', trouble, 20],
  ['returns another state', 'writes it again', () => aReport({ state: { since: 1 } }), 20],
])('the record is written at once when a pass %s, and the next quiet pass %s', async (_, _next, run, atSeconds) => {
  expect(await recordedAfter(quiet, run, quiet)).toEqual([0, 10, atSeconds]);
});

test('a pass without changes or findings is counted, but not logged', async () => {
  const world = await aDispatchWorldOf({});
  await pass(world, quiet, 'kubernetes-service');
  expect(world.telemetry.lines.map(({ message }) => message)).toEqual(['invocation ended']);
  expect(world.telemetry.counters).toMatchObject({ passes: 1, failures: 0 });
  expect(world.telemetry.samples).toContainEqual({ name: 'durationMs', value: 0 });
});

test.each([
  ['a failed pass counts a credential that expires soon', true, 1],
  ['a failed pass does not count a credential that does not expire soon', false, undefined],
])('%s', async (_, credentialEndsSoon, counted) => {
  const world = await aDispatchWorldOf({});
  await pass(world, trouble, 'kubernetes-service', { connect: world.connecting({ credentialEndsSoon }) });
  expect(world.telemetry.counters['credentialsEnding']).toBe(counted);
});

test('a pass counts a credential that expires soon, even if only the look-up of a source uses this credential', async () => {
  const serviceRef = { namespace: 'tenants', name: 'prod', kubeconfig: { secretsManager: 'management' } };
  const world = await aDispatchWorldOf({ apiServers: [aHost('service tenants/prod', { serviceRef })] });
  const look = async ({ spec, lookUp }: PassContext) => {
    for (const source of spec.apiServers) if ('host' in source) await lookUp(source, never).catch(() => {});
    return aReport();
  };
  const connect: typeof world.environment.connect = async (spec, options) => {
    return { ...(await world.environment.connect(spec, options)), credentialEndsSoon: spec.name !== 'demo' };
  };
  await pass(world, look, 'kubernetes-service', { connect });
  expect(world.telemetry.counters['credentialsEnding']).toBe(1);
});
