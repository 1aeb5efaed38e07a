import { expect, test } from '@jest/globals';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import {
  registerCluster,
  unregistered,
  updateCluster,
  withAllocationClosed,
  withMode,
  withOwner,
  withPause,
} from '../../lib/table/cluster-registration.ts';
import { claimCluster, listClusters, readCluster } from '../../lib/table/clusters.ts';
import type { Item, KeyValueTable, TableValue } from '../../lib/table/key-value-table.ts';
import { plainValue } from '../../lib/table/stored-item.ts';
import { won } from '../contract/key-value-table.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { memoryTable } from '../support/memory-table.ts';

const SPEC = aClusterSpec({
  name: 'prod-1',
  mode: 'observe',
  apiServers: [
    aServer('10.9.8.7'),
    { ...aHost('lb.example.com'), probe: { url: 'https://lb.example.com/', path: '/readyz', authenticate: true } },
  ],
  serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'],
});
const PAUSE = { untilMs: 5_000, reason: 'upgrade', by: 'ops' };

async function withCluster(owner?: string): Promise<KeyValueTable> {
  const table = memoryTable();
  await registerCluster(table, SPEC);
  if (owner !== undefined) await claimCluster(table, SPEC.name, owner);
  return table;
}

function itemOf(table: KeyValueTable, name = SPEC.name) {
  return table.get('#clusters', name);
}

test.each<[string, Partial<ClusterSpec>, boolean]>([
  ['mode', { mode: 'enforce' }, true],
  ['API servers', { apiServers: [] }, false],
  ['allocator', { allocator: 'table' }, true],
  ['primary range', { serviceClusterIPRanges: ['10.1.0.0/24', 'fd00::/112'] }, true],
  ['node ports', { serviceNodePortRange: '30000-30999' }, true],
])(
  'a change of the %s increments the generation, and a change of a range, the allocator or the mode also increments the ranges generation',
  async (_, change, ranges) => {
    const table = await withCluster();
    const spec = { ...SPEC, ...change };
    const changed = await registerCluster(table, spec);
    expect(changed).toEqual({ spec, generation: 2, rangesGeneration: ranges ? 2 : 1 });
    expect(await readCluster(table, SPEC.name)).toEqual(changed);
  },
);

test.each<[TableValue, number]>([
  [{ generation: 7 }, 8],
  [{ generation: 1 }, 2],
  ['not a range', 1],
])('a cluster registered again gets the generation after that of its stored range: %j', async (value, generation) => {
  const table = memoryTable();
  const put = (key: string, of: TableValue) => table.put({ cluster: SPEC.name, key, value: of, schema: 1 }, undefined);
  won(await put('ranges/serviceips', value));
  won(await put('other', { generation: 99 }));
  await registerCluster(table, SPEC);
  expect(await readCluster(table, SPEC.name)).toMatchObject({ generation, rangesGeneration: generation });
});

test('registerCluster does not change a registration that a later version wrote', async () => {
  const table = memoryTable();
  const item = won(await table.put({ cluster: '#clusters', key: SPEC.name, value: {}, schema: 2 }, undefined));
  await expect(registerCluster(table, SPEC)).rejects.toMatchObject({ code: 'SchemaTooNew' });
  expect(await itemOf(table)).toEqual(item);
});

const CHANGED = { ...SPEC, mode: 'enforce' } as const;
const TOO_LATE = { code: 'ChangedMeanwhile' };

test('a registration is replaced if it is unchanged since it was read', async () => {
  const table = memoryTable();
  await registerCluster(table, SPEC, { replaces: 'none' });
  expect(await registerCluster(table, CHANGED, { replaces: 1 })).toMatchObject({ generation: 2 });
  expect(await updateCluster(table, SPEC.name, unregistered, { replaces: 2 })).toBe(true);
  expect(await registerCluster(table, SPEC, { replaces: 'none' })).toMatchObject({ generation: 3 });
});

test.each([2, 'none'] as const)('a caller that expects generation %s cannot replace generation 1', async (replaces) => {
  const table = await withCluster();
  await expect(registerCluster(table, CHANGED, { replaces })).rejects.toMatchObject(TOO_LATE);
  await expect(updateCluster(table, SPEC.name, unregistered, { replaces })).rejects.toMatchObject(TOO_LATE);
  expect(await readCluster(table, SPEC.name)).toMatchObject({ generation: 1, spec: SPEC });
});

test('a registration that was removed since it was read is not created again', async () => {
  const table = await withCluster();
  await updateCluster(table, SPEC.name, unregistered);
  await expect(registerCluster(table, CHANGED, { replaces: 1 })).rejects.toMatchObject({
    ...TOO_LATE,
    message: expect.stringContaining('prod-1 is no longer registered: another writer'),
  });
});

test('a registration is replaced even if the cluster was paused since the read, or if the same spec was registered since the read', async () => {
  const table = await withCluster();
  await updateCluster(table, SPEC.name, withPause(PAUSE));
  expect(await registerCluster(table, CHANGED, { replaces: 1 })).toMatchObject({ paused: PAUSE });
  expect(await registerCluster(table, CHANGED, { replaces: 1 })).toMatchObject({ generation: 2 });
});

test('withMode changes only the mode of the spec, and increments the generation only if the mode changes', async () => {
  const table = await withCluster('prod');
  await updateCluster(table, SPEC.name, withPause(PAUSE));
  await updateCluster(table, SPEC.name, withMode('enforce'));
  const changed = await readCluster(table, SPEC.name);
  const spec = { ...SPEC, mode: 'enforce' };
  expect(changed).toEqual({ spec, generation: 2, rangesGeneration: 2, paused: PAUSE, owner: { stack: 'prod' } });
  await updateCluster(table, SPEC.name, withMode('enforce'));
  expect(await readCluster(table, SPEC.name)).toEqual(changed);
});

test('a change of a cluster that is not registered, or no longer registered, writes nothing', async () => {
  const table = memoryTable();
  const changes = async () => [
    await updateCluster(table, SPEC.name, unregistered),
    await updateCluster(table, SPEC.name, withMode('enforce')),
    await claimCluster(table, SPEC.name, 'prod'),
    await updateCluster(table, SPEC.name, withOwner('prod')),
    await updateCluster(table, SPEC.name, withPause(PAUSE)),
    await updateCluster(table, SPEC.name, withAllocationClosed),
  ];
  const nothing = [false, false, undefined, false, false, false];
  expect(await changes()).toEqual(nothing);
  expect(await itemOf(table)).toBeUndefined();
  await registerCluster(table, SPEC);
  await updateCluster(table, SPEC.name, unregistered);
  const before = await itemOf(table);
  expect(await changes()).toEqual(nothing);
  expect(await itemOf(table)).toEqual(before);
});

const registration = (spec: object) => plainValue({ generation: 1, rangesGeneration: 1, spec });

test.each<[string, Pick<Item, 'value' | 'schema'>, string, string]>([
  ['is not a map', { value: 'x', schema: 1 }, 'Corrupt', 'remove it to start again'],
  ['has another spec', { value: registration(SPEC), schema: 1 }, 'Corrupt', 'holds the spec of prod-1; register'],
  [
    'has too many API servers',
    { value: registration({ apiServers: Array(1000).fill({}) }), schema: 1 },
    'Corrupt',
    'register the cluster again, with its whole spec',
  ],
  ['was written by a later version', { value: {}, schema: 2 }, 'SchemaTooNew', 'deploy the newer version'],
])('other registrations can still be listed if a registration %s', async (_, content, code, message) => {
  const table = await withCluster();
  won(await table.put({ cluster: '#clusters', key: 'bad', ...content }, undefined));
  const { clusters, unreadable } = await listClusters(table);
  expect(clusters.map(({ spec }) => spec.name)).toEqual([SPEC.name]);
  expect(unreadable).toMatchObject([{ name: 'bad', error: { code, message: expect.stringContaining(message) } }]);
  await expect(readCluster(table, 'bad')).rejects.toMatchObject({ code });
});
