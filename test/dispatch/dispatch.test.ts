import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { updateCluster, withPause } from '../../lib/table/cluster-registration.ts';
import { aDispatchWorld, aDispatchWorldOf, aLoop } from '../support/dispatch-world.ts';

const hang = () => new Promise<never>(() => {});
const fail = (error: Error) => () => Promise.reject(error);
const MINUTE = 60_000;

test('an invocation runs a pass only for clusters whose last pass began at least an interval ago', async () => {
  const world = aDispatchWorld();
  const intervalSeconds = { 'system-namespaces': 300 };
  await world.register({ name: 'every-five-minutes', intervalSeconds }, { name: 'every-minute' });
  const { loop, names } = aLoop();
  await world.dispatch(loop);
  world.clock.nowMs += MINUTE;
  expect(await world.dispatch(loop)).toEqual({ passes: 1, failed: 0, skipped: 1 });
  expect(names()).toEqual(['every-five-minutes', 'every-minute', 'every-minute']);
});

test('a paused cluster has no pass, even if the request sets force, and the log contains the pause', async () => {
  const world = await aDispatchWorldOf({ name: 'a' }, { name: 'b' });
  const untilMs = world.clock.nowMs + MINUTE;
  await updateCluster(world.table, 'a', withPause({ untilMs, reason: 'an upgrade', by: 'ops' }));
  const { loop, names } = aLoop();
  expect(await world.dispatch(loop, { force: true })).toEqual({ passes: 1, failed: 0, skipped: 1 });
  expect(names()).toEqual(['b']);
  const paused = ['a until 2026-01-01T12:01:00.000Z by ops: an upgrade'];
  expect(world.telemetry.logged('invocation ended')).toMatchObject([{ paused }]);
  world.clock.nowMs = untilMs;
  await world.dispatch(loop);
  expect(names()).toEqual(['b', 'a', 'b']);
});

test('an invocation does not fail if the end of a pause is later than any valid date', async () => {
  const world = await aDispatchWorldOf({ name: 'a' });
  await updateCluster(world.table, 'a', withPause({ untilMs: 8.64e15 + 1, reason: 'forever', by: 'ops' }));
  expect(await world.dispatch(aLoop().loop)).toEqual({ passes: 0, failed: 0, skipped: 1 });
  const paused = ['a until 8640000000000001 by ops: forever'];
  expect(world.telemetry.logged('invocation ended')).toMatchObject([{ paused }]);
});

test('a request for a cluster that is not registered is reported as a failure', async () => {
  const world = await aDispatchWorldOf({ name: 'a' });
  const { loop, names } = aLoop();
  expect(await world.dispatch(loop, { clusters: ['a', 'nowhere'] })).toEqual({ passes: 2, failed: 1, skipped: 0 });
  expect(names()).toEqual(['a']);
  const errors = [
    'NotRegistered: Cluster nowhere is not registered in the table: kbctl status lists the registered clusters.',
  ];
  expect(world.telemetry.logged('pass failed')).toEqual([{ level: 'error', cluster: 'nowhere', errors }]);
});

test('a pass that throws an error is recorded as failed with code and message, and the other passes run', async () => {
  const world = await aDispatchWorldOf({ name: 'a' }, { name: 'b' });
  const { loop } = aLoop({ a: fail(new ClusterError('Forbidden', 'namespaces is forbidden')) });
  expect(await world.dispatch(loop)).toEqual({ passes: 2, failed: 1, skipped: 0 });
  const error = { code: 'Forbidden', message: 'namespaces is forbidden' };
  expect(await world.recordOf('a')).toMatchObject({ outcome: 'failed', error, failuresInARow: 1 });
  expect(await world.recordOf('b')).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
  expect(world.telemetry.counters).toMatchObject({ passes: 2, failures: 1 });
  const errors = ['Forbidden: namespaces is forbidden'];
  expect(world.telemetry.logged('pass failed')).toMatchObject([{ level: 'error', cluster: 'a', errors }]);
});

test('an API server that does not answer causes one error in the log, however many requests fail', async () => {
  const world = await aDispatchWorldOf({ name: 'a' });
  const server = 'https://one';
  const silent = new ClusterError('Unavailable', 'no answer for kube-system', { server });
  const errors = [
    silent,
    new ClusterError('DeadlineExceeded', 'no answer for default', { server }),
    new ClusterError('Unavailable', 'unable to create Namespace', { cause: silent }),
    new ClusterError('Unavailable', 'no answer', { server: 'https://two' }),
    ...['d', 'e'].map((name) => new ClusterError('BadKubeconfig', `no token for ${name}`)),
    ...['b', 'c'].map((name) => new ClusterError('Forbidden', `forbids ${name}`, { server })),
  ];
  const { loop } = aLoop({ a: async () => ({ changes: [], findings: [], counts: {}, errors }) });
  await world.dispatch(loop);
  const texts = [
    'Unavailable: no answer for kube-system (2 more for the same reason)',
    'Unavailable: no answer',
    'BadKubeconfig: no token for d (1 more for the same reason)',
    'Forbidden: forbids b',
    'Forbidden: forbids c',
  ];
  expect(world.telemetry.logged('pass failed')).toMatchObject([{ errors: texts }]);
  const error = { code: 'Unavailable', message: 'no answer for kube-system', server };
  expect(await world.recordOf('a')).toMatchObject({ error });
});

test('a pass that never ends is recorded as failed at its deadline, and does not delay the passes of other clusters', async () => {
  const world = await aDispatchWorldOf({ name: 'hangs' }, { name: 'works' });
  const { loop } = aLoop({ hangs: hang });
  const done = world.dispatch(loop);
  while ((await world.recordOf('works')) === undefined) await turn();
  expect(await world.recordOf('hangs')).toBeUndefined();
  // The first deadline is for the list of clusters.
  world.deadlines[1]?.expire();
  expect(await done).toEqual({ passes: 2, failed: 1, skipped: 0 });
  expect(await world.recordOf('hangs')).toMatchObject({ outcome: 'failed', error: { code: 'DeadlineExceeded' } });
  expect(world.deadlines.every(({ cancelled }) => cancelled)).toBe(true);
});

test('an unexpected error is logged with its stack trace', async () => {
  const world = await aDispatchWorldOf({ name: 'a' });
  await world.dispatch(aLoop({ a: fail(new TypeError('x is not a function')) }).loop);
  const [line] = world.telemetry.logged('pass failed');
  expect(line).toMatchObject({ errors: ['TypeError: x is not a function'] });
  expect(line?.['stack']).toContainEqual(expect.stringContaining('dispatch.test.ts'));
});

test.each([
  { loop: 'system-namespaces', remainingMs: 60_000, budgetMs: 20_000, listingMs: 16_000 },
  { loop: 'system-namespaces', remainingMs: 12_000, budgetMs: 8_000, listingMs: 8_000 },
  { loop: 'kubernetes-service', remainingMs: 60_000, budgetMs: 9_000, listingMs: 13_250 },
  { loop: 'cluster-ip-repair', remainingMs: 300_000, budgetMs: 120_000, listingMs: 19_000 },
  { loop: 'node-port-repair', remainingMs: 50_000, budgetMs: 46_000, listingMs: 22_000 },
] as const)(
  'if the invocation has $remainingMs ms left, the time limit of a pass of $loop is $budgetMs ms, and that of the list of clusters is $listingMs ms',
  async ({ loop: id, remainingMs, budgetMs, listingMs }) => {
    const world = await aDispatchWorldOf({ name: 'a' });
    await world.dispatch(aLoop({}, id).loop, {}, { remainingMs: () => remainingMs });
    // The last time limit is that of the run record.
    expect(world.deadlines.map(({ ms }) => ms)).toEqual([listingMs, budgetMs, 3_000]);
  },
);

test('a pass that cannot begin in time is logged and counted as failed, and gets no record', async () => {
  const world = await aDispatchWorldOf({ name: 'a' });
  const { loop, contexts } = aLoop();
  const remaining = [60_000, 4_000].values();
  const remainingMs = () => remaining.next().value ?? 0;
  expect(await world.dispatch(loop, {}, { remainingMs })).toEqual({ passes: 1, failed: 1, skipped: 0 });
  expect(contexts).toEqual([]);
  expect(await world.recordOf('a')).toBeUndefined();
  expect(world.telemetry.counters).toMatchObject({ passes: 1, failures: 1 });
  expect(world.telemetry.logged('invocation ended')).toMatchObject([{ level: 'error', unreached: ['a'] }]);
});
