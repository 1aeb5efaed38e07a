import { describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, TableValue } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { won } from '../contract/key-value-table.ts';
import { aMisbehavingWorld, CLUSTER, type MisbehavingWorld } from './misbehaving-world.ts';

interface Put {
  readonly cluster?: string;
  readonly key: string;
  readonly value: TableValue;
}

async function put({ table }: MisbehavingWorld, { cluster = CLUSTER, key, value }: Put): Promise<Item> {
  return won(await table.put({ cluster, key, value, schema: 1 }, undefined));
}

test('a pass that reads a range whose snapshot is not binary fails and saves nothing, and the next pass succeeds once the item is removed', async () => {
  const world = await aMisbehavingWorld();
  const strikes = { once: new Uint8Array(), twice: new Uint8Array() };
  const value = { range: '10.0.0.0/24', data: 'AAAA', allocator: 'table', generation: 1, strikes };
  const item = await put(world, { key: 'ranges/serviceips', value });
  const pattern =
    /serviceips does not parse: data is not of type Uint8Array.*restore its last good content, or remove it/;
  await world.expectFailedPass('cluster-ip-repair', pattern);
  await world.expectFirstFailure('cluster-ip-repair', 'CorruptSnapshot', pattern);
  expect(await world.table.get(CLUSTER, 'ranges/serviceips')).toEqual(item);
  world.table.remove(item.cluster, item.key);
  await world.expectNextPass('cluster-ip-repair');
});

test.each(LOOPS)('while the run record of %s is corrupt, no pass of that loop runs', async (loop) => {
  const world = await aMisbehavingWorld();
  const key = `runs/${loop}`;
  const item = await put(world, { key, value: { passId: 7 } });
  await world.expectFailedPass(loop, /^Corrupt: Item .*passId/);
  expect(await world.table.get(CLUSTER, key)).toEqual(item);
  world.table.remove(item.cluster, item.key);
  await world.expectNextPass(loop);
});

describe('a registration', () => {
  const registered = (world: MisbehavingWorld, spec: object) =>
    plainValue({ generation: 4, rangesGeneration: 3, spec: { ...world.spec({ name: 'bad' }), ...spec } });

  test('a registration whose spec lacks a field is not changed, and only the pass of that cluster fails', async () => {
    const world = await aMisbehavingWorld();
    const value = registered(world, { endpoints: undefined });
    const item = await put(world, { cluster: '#clusters', key: 'bad', value });

    expect(await world.tick('system-namespaces')).toEqual({ passes: 2, failed: 1, skipped: 0 });

    const error = /^Corrupt: .*spec\.endpoints is not of type object.*register the cluster again, with its whole spec/;
    expect(world.telemetry.lines.find(({ fields }) => fields['cluster'] === 'bad')).toEqual({
      level: 'error',
      message: 'pass failed',
      fields: { cluster: 'bad', errors: [expect.stringMatching(error)] },
    });
    expect(await world.record('system-namespaces')).toMatchObject({ outcome: 'succeeded' });
    expect(await world.table.list('bad', '')).toEqual([]);
    expect(await world.table.get('#clusters', 'bad')).toEqual(item);
  });

  test('a new registration replaces a corrupt one, and has the next generation', async () => {
    const world = await aMisbehavingWorld();
    await put(world, { cluster: '#clusters', key: 'bad', value: registered(world, { endpoints: 'none' }) });
    const spec = world.spec({ name: 'bad' });
    expect(await registerCluster(world.table, spec)).toEqual({ spec, generation: 5, rangesGeneration: 5 });
  });
});

test('if the pause of all clusters is corrupt, the invocation fails and runs no pass, because all clusters might be paused', async () => {
  const world = await aMisbehavingWorld();
  const item = await put(world, { cluster: '#clusters', key: '*', value: { paused: 'yes' } });
  const before = await world.state();
  await expect(world.tick('system-namespaces')).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringMatching(/#clusters\/\* does not parse.*correct it, or remove it/),
  });
  expect(await world.state()).toEqual(before);
  world.table.remove(item.cluster, item.key);
  expect(await world.tick('system-namespaces')).toMatchObject({ failed: 0 });
});
