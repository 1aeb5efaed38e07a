import { describe, expect, test } from '@jest/globals';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item, TableValue } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { won } from '../contract/key-value-table.ts';
import { aMisbehavingWorld, CLUSTER, type MisbehavingWorld } from './misbehaving-world.ts';

interface BadItem {
  readonly what: string;
  readonly loop: Loop;
  readonly key: string;
  readonly value: TableValue;
  readonly schema?: number;
  readonly code: string;
  readonly pattern: RegExp;
}

type Put = Pick<BadItem, 'key' | 'value' | 'schema'> & { readonly cluster?: string };

async function put({ table }: MisbehavingWorld, { cluster = CLUSTER, key, value, schema = 1 }: Put): Promise<Item> {
  return won(await table.put({ cluster, key, value, schema }, undefined));
}

const strikes = { once: new Uint8Array(), twice: new Uint8Array() };
const stored = { range: '10.0.0.0/24', data: new Uint8Array(), allocator: 'table', generation: 1, strikes };
const lease = { generation: 1, source: 'probe', expiresAtMs: 0, misses: 0, seenDown: false };

const ADDRESSES = { loop: 'cluster-ip-repair', key: 'ranges/serviceips' } as const;
const PORTS = { loop: 'node-port-repair', key: 'ranges/servicenodeports' } as const;

const BAD_ITEMS: readonly BadItem[] = [
  {
    ...ADDRESSES,
    what: 'a range whose snapshot is not binary',
    value: { ...stored, data: 'AAAA' },
    code: 'CorruptSnapshot',
    pattern: /serviceips does not parse: data is not of type Uint8Array.*restore its last good content, or remove it/,
  },
  {
    ...PORTS,
    what: 'a range of a later version',
    value: { ...stored, range: '30000-32767' },
    schema: 3,
    code: 'SchemaTooNew',
    pattern: /ranges\/servicenodeports has schema 3 and this version reads 2.*deploy the newer version/,
  },
  {
    what: 'a corrupt lease',
    loop: 'kubernetes-service',
    key: 'masterleases',
    value: { '10.9.8.7': { ...lease, expiresAtMs: 'tomorrow' } },
    code: 'Corrupt',
    pattern: /masterleases does not parse: 10\.9\.8\.7\.expiresAtMs is not of type number.*correct it, or remove it/,
  },
];

test.each(BAD_ITEMS)(
  'a pass that reads $what fails and saves nothing, and the next pass succeeds once the item is removed',
  async ({ loop, code, pattern, ...bad }) => {
    const world = await aMisbehavingWorld();
    const item = await put(world, bad);
    await world.expectFailedPass(loop, pattern);
    await world.expectFirstFailure(loop, code, pattern);
    expect(await world.table.get(CLUSTER, bad.key)).toEqual(item);
    world.remove(item.cluster, item.key);
    await world.expectNextPass(loop);
  },
);

test.each(LOOPS)('while the run record of %s is corrupt, no pass of that loop runs', async (loop) => {
  const world = await aMisbehavingWorld();
  const key = `runs/${loop}`;
  const item = await put(world, { key, value: { passId: 7 } });
  await world.expectFailedPass(loop, /^Corrupt: Item .*passId/);
  expect(await world.table.get(CLUSTER, key)).toEqual(item);
  world.remove(item.cluster, item.key);
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
    expect(await world.tick('system-namespaces')).toEqual({ passes: 2, failed: 0, skipped: 0 });
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
  world.remove(item.cluster, item.key);
  expect(await world.tick('system-namespaces')).toMatchObject({ failed: 0 });
});
