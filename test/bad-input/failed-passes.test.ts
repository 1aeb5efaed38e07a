import { beforeEach, expect, test } from '@jest/globals';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, TableValue } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { won } from '../contract/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import { READY } from '../support/pass-world.ts';

const CLUSTER = 'demo';
const LOOPS = [systemNamespaces, kubernetesService, clusterIpRepair, nodePortRepair];

let world: DispatchWorld;

beforeEach(async () => {
  world = aDispatchWorld();
  // The table allocates, so that every loop has something to write in its first pass.
  await world.register({ name: CLUSTER, allocator: 'table' });
});

/** Invokes the function of a loop once, an interval after the last invocation. */
function tick(loop: LoopDefinition) {
  world.clock.nowMs += aClusterSpec().intervalSeconds[loop.id] * 1000;
  const connect = world.connecting({ probe: async () => READY });
  return world.dispatch(loop, world.schedule(), { environment: { connect } });
}

/** Returns the writes to the cluster, and the items of the cluster, except run records and leases. */
async function state() {
  const items = (await world.table.list(CLUSTER, '')).filter(({ key }) => !/^(runs\/|masterleases$)/.test(key));
  return { writes: [...world.cluster(CLUSTER).writes], items };
}

async function put(key: string, value: TableValue, cluster = CLUSTER): Promise<Item> {
  return won(await world.table.put({ cluster, key, value, schema: 1 }, undefined));
}

const strikes = { once: new Uint8Array(), twice: new Uint8Array() };
const notBinary = { range: '10.0.0.0/24', data: 'AAAA', allocator: 'table', generation: 1, strikes };
const CORRUPT_RANGE =
  /^CorruptSnapshot: .*serviceips does not parse: data is not of type Uint8Array.*restore its last good content, or remove it/;

test.each<readonly [string, string, LoopDefinition, TableValue, RegExp]>([
  [clusterIpRepair.id, 'ranges/serviceips', clusterIpRepair, notBinary, CORRUPT_RANGE],
  ...LOOPS.map((loop) => [loop.id, `runs/${loop.id}`, loop, { passId: 7 }, /^Corrupt: Item .*passId/] as const),
])('a pass of %s fails and changes nothing only while %s is corrupt', async (_, key, loop, value, pattern) => {
  const item = await put(key, value);
  const before = await state();
  expect(await tick(loop)).toEqual({ passes: 1, failed: 1, skipped: 0 });
  const errors = expect.arrayContaining([expect.stringMatching(pattern)]);
  expect(world.telemetry.logged('pass failed')).toMatchObject([{ level: 'error', cluster: CLUSTER, errors }]);
  expect(await state()).toEqual(before);
  expect(await world.table.get(CLUSTER, key)).toEqual(item);
  world.table.remove(CLUSTER, key);
  expect(await tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
  expect(await world.recordOf(CLUSTER, loop.id)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
  expect(await state()).not.toEqual(before);
});

const registered = (spec: object) =>
  plainValue({ generation: 4, rangesGeneration: 3, spec: { ...aClusterSpec({ name: 'bad' }), ...spec } });

test('if the registered spec of a cluster lacks a field, only the pass of that cluster fails, and the registration is not changed', async () => {
  const item = await put('bad', registered({ endpoints: undefined }), '#clusters');
  expect(await tick(systemNamespaces)).toEqual({ passes: 2, failed: 1, skipped: 0 });
  const error = /^Corrupt: .*spec\.endpoints is not of type object.*register the cluster again, with its whole spec/;
  const errors = [expect.stringMatching(error)];
  expect(world.telemetry.logged('pass failed')).toEqual([{ level: 'error', cluster: 'bad', errors }]);
  expect(await world.recordOf(CLUSTER)).toMatchObject({ outcome: 'succeeded' });
  expect(await world.table.list('bad', '')).toEqual([]);
  expect(await world.table.get('#clusters', 'bad')).toEqual(item);
});

test('a new registration replaces a corrupt registration, and has the next generation', async () => {
  await put('bad', registered({ endpoints: 'none' }), '#clusters');
  const spec = aClusterSpec({ name: 'bad' });
  expect(await registerCluster(world.table, spec)).toEqual({ spec, generation: 5, rangesGeneration: 5 });
});

test('if the pause of all clusters is corrupt, the invocation fails and runs no pass, because all clusters might be paused', async () => {
  await put('*', { paused: 'yes' }, '#clusters');
  const before = await state();
  const message = expect.stringMatching(/#clusters\/\* does not parse.*correct it, or remove it/);
  await expect(tick(systemNamespaces)).rejects.toMatchObject({ code: 'Corrupt', message });
  expect(await state()).toEqual(before);
  world.table.remove('#clusters', '*');
  expect(await tick(systemNamespaces)).toMatchObject({ failed: 0 });
});
