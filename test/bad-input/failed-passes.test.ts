import { expect, test } from '@jest/globals';
import { loadKubeconfigFile } from '../../lib/kubernetes/kubeconfig.ts';
import { type ClusterSpec, LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, KeyValueTable, TableValue } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { LOOP_HANDLERS } from '../../local/loop-handlers.ts';
import { won } from '../contract/key-value-table.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { aProcess } from '../support/a-process.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { startMisbehavingCluster, TOKEN } from '../support/misbehaving-cluster.ts';

const CLUSTER = 'demo';

type MisbehavingWorld = Awaited<ReturnType<typeof aMisbehavingWorld>>;

/**
 * Creates, for one test, one registered cluster and the handlers of all loops. The table allocates, so that every loop has
 * something to write in its first pass. After the test, it is checked that no log line and no table item contains the token of
 * the cluster.
 */
async function aMisbehavingWorld() {
  const cluster = await startMisbehavingCluster();
  const { environment, telemetry, clock, deadlines, table, recordOf, schedule } = aDispatchWorld({
    connect: (wanted, options) => connections.connect(wanted, options),
  });
  const { nowMs } = environment;
  const connections = aProcess(() => loadKubeconfigFile(cluster.kubeconfigFile), { nowMs }).clusters;
  const specOf = (change: Partial<ClusterSpec> = {}) =>
    aClusterSpec({
      name: CLUSTER,
      allocator: 'table',
      kubeconfig: { file: cluster.kubeconfigFile },
      apiServers: [aServer('10.9.8.7', { url: `${cluster.url}/readyz` })],
      ...change,
    });
  await registerCluster(table, specOf());
  afterThisTest(async () => {
    await cluster.stop();
    expect(JSON.stringify([telemetry.lines, await itemsIn(table)])).not.toContain(TOKEN);
  });

  /** Invokes the loop's handler once, an interval after the last invocation. */
  const tick = (loop: Loop) => {
    clock.nowMs += specOf().intervalSeconds[loop] * 1000;
    return LOOP_HANDLERS[loop](schedule(), { environment, getRemainingTimeInMillis: () => 60_000 });
  };
  const record = (loop: Loop) => recordOf(CLUSTER, loop);
  /** Returns the objects of the cluster and the items of the table, except run records and leases. */
  const state = async () => ({
    objects: await cluster.objects(),
    items: (await itemsIn(table)).filter(({ key }) => !/^(runs\/|masterleases$)/.test(key)),
  });

  return {
    ...{ cluster, telemetry, table, spec: specOf, tick, deadlines, record, state },
    /** Runs a pass that must fail, change nothing and log this error. */
    expectFailedPass: async (loop: Loop, pattern: RegExp) => {
      const before = await state();
      expect(await tick(loop)).toEqual({ passes: 1, failed: 1, skipped: 0 });
      const errors = expect.arrayContaining([expect.stringMatching(pattern)]);
      const fields = { cluster: CLUSTER, errors };
      expect(telemetry.lines[0]).toMatchObject({ level: 'error', message: 'pass failed', fields });
      expect(telemetry.lines[0]?.fields['eventErrors']).toBeUndefined();
      expect(await state()).toEqual(before);
    },
    /** Runs a pass that must succeed and write something. */
    expectNextPass: async (loop: Loop) => {
      const before = await state();
      expect(await tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
      expect(await record(loop)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
      expect(await state()).not.toEqual(before);
    },
  };
}

async function itemsIn(table: KeyValueTable): Promise<Item[]> {
  const partitions = await Promise.all(['#clusters', CLUSTER].map((partition) => table.list(partition, '')));
  return partitions.flat();
}

async function put({ table }: MisbehavingWorld, key: string, value: TableValue, cluster = CLUSTER): Promise<Item> {
  return won(await table.put({ cluster, key, value, schema: 1 }, undefined));
}

/* test/kubernetes has the other faults. */
test.each(LOOPS)('a pass of %s whose API server does not answer in time fails and changes nothing', async (loop) => {
  const world = await aMisbehavingWorld();
  world.cluster.misbehave(() => {
    for (const { expire } of world.deadlines) expire();
    return { hang: true };
  });
  const pattern = /https.* did not answer "(get|list) .*" before the deadline of the pass/;
  await world.expectFailedPass(loop, pattern);
  const error = { code: 'DeadlineExceeded', message: expect.stringMatching(pattern) };
  expect(await world.record(loop)).toMatchObject({ outcome: 'failed', failuresInARow: 1, error });
  world.cluster.misbehave(() => undefined);
  await world.expectNextPass(loop);
});

const strikes = { once: new Uint8Array(), twice: new Uint8Array() };
const notBinary = { range: '10.0.0.0/24', data: 'AAAA', allocator: 'table', generation: 1, strikes };
const CORRUPT_RANGE =
  /^CorruptSnapshot: .*serviceips does not parse: data is not of type Uint8Array.*restore its last good content, or remove it/;

test.each<readonly [Loop, string, TableValue, RegExp]>([
  ['cluster-ip-repair', 'ranges/serviceips', notBinary, CORRUPT_RANGE],
  ...LOOPS.map((loop) => [loop, `runs/${loop}`, { passId: 7 }, /^Corrupt: Item .*passId/] as const),
])(
  'a pass of %s fails while the item %s is corrupt, and succeeds after its removal',
  async (loop, key, value, pattern) => {
    const world = await aMisbehavingWorld();
    const item = await put(world, key, value);
    await world.expectFailedPass(loop, pattern);
    expect(await world.table.get(CLUSTER, key)).toEqual(item);
    world.table.remove(item.cluster, item.key);
    await world.expectNextPass(loop);
  },
);

const registered = (world: MisbehavingWorld, spec: object) =>
  plainValue({ generation: 4, rangesGeneration: 3, spec: { ...world.spec({ name: 'bad' }), ...spec } });

test('a registration whose spec lacks a field is not changed, and only the pass of that cluster fails', async () => {
  const world = await aMisbehavingWorld();
  const value = registered(world, { endpoints: undefined });
  const item = await put(world, 'bad', value, '#clusters');

  expect(await world.tick('system-namespaces')).toEqual({ passes: 2, failed: 1, skipped: 0 });

  const error = /^Corrupt: .*spec\.endpoints is not of type object.*register the cluster again, with its whole spec/;
  const line = world.telemetry.lines.find(({ fields }) => fields['cluster'] === 'bad');
  const fields = { cluster: 'bad', errors: [expect.stringMatching(error)] };
  expect(line).toEqual({ level: 'error', message: 'pass failed', fields });
  expect(await world.record('system-namespaces')).toMatchObject({ outcome: 'succeeded' });
  expect(await world.table.list('bad', '')).toEqual([]);
  expect(await world.table.get('#clusters', 'bad')).toEqual(item);
});

test('a new registration replaces a corrupt one, and has the next generation', async () => {
  const world = await aMisbehavingWorld();
  await put(world, 'bad', registered(world, { endpoints: 'none' }), '#clusters');
  const spec = world.spec({ name: 'bad' });
  expect(await registerCluster(world.table, spec)).toEqual({ spec, generation: 5, rangesGeneration: 5 });
});

test('if the pause of all clusters is corrupt, the invocation fails and runs no pass, because all clusters might be paused', async () => {
  const world = await aMisbehavingWorld();
  const item = await put(world, '*', { paused: 'yes' }, '#clusters');
  const before = await world.state();
  const message = expect.stringMatching(/#clusters\/\* does not parse.*correct it, or remove it/);
  await expect(world.tick('system-namespaces')).rejects.toMatchObject({ code: 'Corrupt', message });
  expect(await world.state()).toEqual(before);
  world.table.remove(item.cluster, item.key);
  expect(await world.tick('system-namespaces')).toMatchObject({ failed: 0 });
});
