import { beforeEach, expect, test } from '@jest/globals';
import { dispatch, type Summary } from '../../lib/dispatch/dispatch.ts';
import type { LoopInvocation } from '../../lib/dispatch/run-pass.ts';
import type { LoopDefinition, PassReport } from '../../lib/loops/pass.ts';
import { CONCURRENT_PASSES } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { TableError, type TableErrorCode } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, aLoop, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { downQueue, memoryQueue, queueEvent } from '../support/memory-queue.ts';

const FLEET = Array.from({ length: CONCURRENT_PASSES * 2 + 3 }, (_, index) => `c-${String(index).padStart(2, '0')}`);

let world: DispatchWorld;
let queue: ReturnType<typeof memoryQueue>;
let memory: LoopInvocation['memory'];
/** The pass of each cluster, by name. A pass of any other cluster does nothing. */
let scripts: Record<string, () => Promise<PassReport>>;
let loop: LoopDefinition;
/** Returns the names of the clusters whose passes ran. */
let ran: () => readonly string[];

function invoke(event: unknown, overrides: Partial<Environment> = {}): Promise<Summary> {
  return world.dispatch(loop, event, { environment: { tickQueue: queue.queue, ...overrides }, memory });
}

const schedule = () => world.schedule();
const logged = (message: string) => world.telemetry.logged(message);
const tickOf = (overrides: object = {}) =>
  JSON.stringify({ schema: 1, loop: 'kubernetes-service', dueAtMs: world.clock.nowMs, clusters: ['a'], ...overrides });

beforeEach(() => {
  world = aDispatchWorld();
  queue = memoryQueue(() => world.clock.nowMs);
  memory = {};
  scripts = {};
  ({ loop, names: ran } = aLoop(scripts, 'kubernetes-service'));
});

test('even for one cluster, a scheduled invocation first queues all messages of its minute and then runs the first pass, because the pass might hang', async () => {
  await world.register({ name: 'a' });
  let queuedByThen: number[] = [];
  scripts['a'] = async () => {
    queuedByThen = queue.sent.map(({ delaySeconds }) => delaySeconds);
    return aReport();
  };
  expect(await invoke(schedule())).toEqual({ passes: 1, failed: 0, skipped: 0 });
  expect(queuedByThen).toEqual([10, 20, 30, 40, 50]);
  expect(logged('invocation ended')).toMatchObject([{ queued: 5 }]);
});

test('only a scheduled event queues messages: a direct request or a queued message does not', async () => {
  await world.register({ name: 'a' });
  await invoke({ force: true });
  world.clock.nowMs += 10_000;
  await invoke(queueEvent(tickOf()));
  expect(queue.sent).toEqual([]);
  expect(ran()).toEqual(['a', 'a']);
});

test.each([
  [9_000, [] as string[]],
  [9_001, ['a', 'b']],
])('after passes that keep a warm process busy for %i ms, the suspects are: %j', async (spentMs, clusters) => {
  await world.register({ name: 'a' }, { name: 'b' });
  let busy = 0;
  const pass = async () => {
    busy += spentMs / 2;
    return aReport();
  };
  Object.assign(scripts, { a: pass, b: pass });
  // A process is warm if its environment has run passes.
  const environment = { ...world.environment, stack: 'prod', tickQueue: queue.queue, busyMs: () => busy };
  const invocation = { environment, telemetry: world.telemetry, remainingMs: () => 60_000 };
  const tick = async () => {
    await dispatch({ ...invocation, loop, memory }, queueEvent(tickOf({ clusters: ['a', 'b'] })));
    world.clock.nowMs += 10_000;
  };
  await tick();
  expect(logged('process lost')).toEqual([]);
  await tick();
  expect(logged('suspects run alone').flatMap((line) => line['clusters'])).toEqual(clusters);
  expect(queue.sent.map(({ body }) => JSON.parse(body).clusters)).toEqual(clusters.map((name) => [name]));
});

test('an invocation that runs no pass makes no cluster a suspect, even if the event loop is busy for a minute', async () => {
  await world.register({ name: 'a' }, { name: 'b' });
  let busy = 0;
  await invoke(schedule(), { stack: 'prod', busyMs: () => (busy += 60_000) });
  expect(logged('process lost')).toEqual([]);
});

test.each([
  ['a queue', () => queue.queue],
  ['a queue that is down', () => downQueue],
])('with %s and clustersPerTick 1, a process never runs two passes at a time', async (_what, tickQueue) => {
  const alone = { clustersPerTick: 1 };
  await world.register(...FLEET.map((name) => ({ name })));
  let running = 0;
  const together: number[] = [];
  const pass = async () => {
    running += 1;
    together.push(running);
    await new Promise(setImmediate);
    running -= 1;
    return aReport();
  };
  for (const name of FLEET) scripts[name] = pass;
  await invoke(schedule(), { ...alone, tickQueue: tickQueue() });
  world.clock.nowMs += 9_000;
  for (const event of queue.receive()) await invoke(event, alone);
  expect(ran().toSorted()).toEqual(FLEET);
  expect(new Set(together)).toEqual(new Set([1]));
});

const tableThatFails = (code: TableErrorCode) => {
  const list = () => Promise.reject(new TableError(code, 'the table is down'));
  return { table: () => ({ ...world.table, list }) };
};

test('a process that cannot read the cluster list uses its last list for up to 15 minutes, and logs and counts each use of that list', async () => {
  await world.register({ name: 'a' }, { name: 'b' });
  await invoke(schedule());
  world.clock.nowMs += 15 * 60_000;
  expect(await invoke(schedule(), tableThatFails('Unavailable'))).toEqual({ passes: 0, failed: 0, skipped: 0 });
  expect(queue.sent).toHaveLength(12);
  expect(world.telemetry.counters).toMatchObject({ staleClusterLists: 1 });
  expect(logged('cluster list not read: the last one is used')).toEqual([
    { level: 'error', ageMs: 15 * 60_000, errors: ['Unavailable: the table is down'] },
  ]);
  world.clock.nowMs += 1;
  await expect(invoke(schedule(), tableThatFails('Unavailable'))).rejects.toMatchObject({ code: 'Unavailable' });
});

test('an invocation that cannot read the cluster list fails if the process has no earlier list, or if the table denies access', async () => {
  await world.register({ name: 'a' });
  await expect(invoke(schedule(), tableThatFails('Throttled'))).rejects.toMatchObject({ code: 'Throttled' });
  await invoke(schedule());
  await expect(invoke(schedule(), tableThatFails('AccessDenied'))).rejects.toMatchObject({ code: 'AccessDenied' });
});

test('if the queue is down, the invocation runs the tick of the minute itself, and logs and counts the failure', async () => {
  await world.register(...FLEET.map((name) => ({ name })));
  const summary = await invoke(schedule(), { tickQueue: downQueue });
  expect(summary).toEqual({ passes: FLEET.length, failed: 0, skipped: 0 });
  expect(ran().toSorted()).toEqual(FLEET);
  expect(world.telemetry.counters['unqueuedTicks']).toBe(18);
  const errors = ['Unavailable: the queue is down'];
  expect(logged('ticks not queued')).toEqual([{ level: 'error', ticks: 18, errors }]);
});

test('a scheduled event older than a minute is dropped and counted, because EventBridge delivers all missed events after an outage', async () => {
  await world.register({ name: 'a' });
  const missed = schedule();
  world.clock.nowMs += 60_001;
  expect(await invoke(missed)).toEqual({ passes: 0, failed: 0, skipped: 0 });
  expect([ran(), queue.sent]).toEqual([[], []]);
  expect(world.telemetry.counters).toMatchObject({ lateTicks: 1 });
  expect(await invoke(schedule())).toMatchObject({ passes: 1 });
});

test('an invocation for a message reads each registration once and the item that pauses all clusters once, because these items share a partition', async () => {
  const names = FLEET.slice(0, CONCURRENT_PASSES);
  await world.register(...names.map((name) => ({ name })));
  const keys: string[] = [];
  const get: typeof world.table.get = (cluster, key) => {
    if (cluster === CLUSTERS) keys.push(key);
    return world.table.get(cluster, key);
  };
  await invoke(queueEvent(tickOf({ clusters: names })), { table: () => ({ ...world.table, get }) });
  expect(keys.toSorted()).toEqual(['*', ...names]);
});

test('if a cluster in a message is no longer registered, the cluster is logged and counted as skipped, not as failed', async () => {
  await world.register({ name: 'a' }, { name: 'gone' });
  await updateCluster(world.table, 'gone', unregistered);
  const summary = await invoke(queueEvent(tickOf({ clusters: ['gone', 'a', 'never'] })));
  expect(summary).toEqual({ passes: 1, failed: 0, skipped: 2 });
  expect(ran()).toEqual(['a']);
  expect(logged('invocation ended')).toMatchObject([{ unregistered: ['gone', 'never'] }]);
});

test('if the table is down, the passes of a message are logged and counted as failed, and the message is not retried', async () => {
  await world.register({ name: 'a' });
  const get = () => Promise.reject(new TableError('Unavailable', 'the table is down'));
  const table = () => ({ ...world.table, get });
  expect(await invoke(queueEvent(tickOf()), { table })).toEqual({ passes: 1, failed: 1, skipped: 0 });
  expect(world.telemetry.counters).toMatchObject({ passes: 1, failures: 1 });
  expect(logged('tick failed')).toMatchObject([{ errors: ['Unavailable: the table is down'] }]);
});

test('if a scheduled event or a message is delivered twice at the same time, the passes run twice and all succeed', async () => {
  await world.register({ name: 'a' });
  await Promise.all([invoke(schedule()), invoke(schedule())]);
  expect(queue.sent).toHaveLength(10);
  world.clock.nowMs += 10_000;
  const [message] = queue.receive();
  await Promise.all([invoke(message), invoke(message)]);
  expect(world.telemetry.counters).toMatchObject({ passes: 4, failures: 0 });
  expect(await world.recordOf('a', 'kubernetes-service')).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
});

test('a registration with an invalid key does not prevent the ticks of other clusters', async () => {
  await world.register(...FLEET.map((name) => ({ name })));
  const name = 'c-00.by-hand';
  const value = plainValue({ generation: 1, rangesGeneration: 1, spec: { ...aClusterSpec(), name } });
  await world.table.put({ cluster: CLUSTERS, key: name, schema: 1, value }, undefined);
  await invoke(schedule());
  for (const event of queue.receive()) await invoke(event);
  expect(ran()).toEqual(FLEET);
});
