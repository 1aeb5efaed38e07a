import { describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRebuild } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRebuild } from '../../lib/loops/node-port-repair.ts';
import { TableError } from '../../lib/table/key-value-table.ts';
import { tableWith } from '../repair/faults.ts';
import { countsByType, listing, RepairCluster, storedRange } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';

const { primary: PRIMARY, secondary: SECONDARY, nodePorts: NODE_PORTS } = RANGE_KEYS;
const RANGE = '10.0.0.0/24';

async function putCorrupt(cluster: RepairCluster, key: string = PRIMARY, schema = 1): Promise<void> {
  await cluster.table.put({ cluster: 'test', key, value: 'half a bitmap', schema }, undefined);
}

describe('a rebuilding pass', () => {
  test.each([
    { loop: clusterIpRebuild, key: PRIMARY, range: RANGE, data: fromBits([4]) },
    { loop: nodePortRebuild, key: NODE_PORTS, range: '30000-32767', data: fromBits([1]) },
  ])(
    'the rebuild of $loop.id replaces a corrupt snapshot by the claims of the Services',
    async ({ loop, key, range, data }) => {
      const cluster = new RepairCluster({ services: [withAddresses('s', '10.0.0.5'), withNodePorts('t', 30_001)] });
      await putCorrupt(cluster, key);
      const report = await cluster.pass(loop);
      expect(report).toMatchObject({ findings: [], errors: [] });
      expect(report.changes).toEqual([expect.stringMatching(`^rebuilt ${key}: 1 of `)]);
      expect(await cluster.stored(key)).toEqual(storedRange({ range, data }));
    },
  );

  test('a rebuilding pass replaces a snapshot whose bytes belong to no range, without its holds', async () => {
    const cluster = new RepairCluster({ services: [withAddresses('s', '10.0.0.5')] });
    const holds = [{ items: ['10.0.0.9'], owner: 'migration', takenUpBy: 'any' as const }];
    await cluster.store(PRIMARY, { range: 'garbage', data: fromBits([8]), holds });
    await cluster.pass(clusterIpRebuild);
    expect(await cluster.stored(PRIMARY)).toEqual(storedRange({ range: RANGE, data: fromBits([4]) }));
  });

  test('a rebuilding pass reports faults of the Services', async () => {
    const cluster = new RepairCluster({
      services: [withAddresses('one', '10.0.0.5'), withAddresses('two', '10.0.0.5')],
    });
    await putCorrupt(cluster);
    expect(countsByType(await cluster.pass(clusterIpRebuild))).toEqual({ duplicate: 1 });
  });

  test('a rebuilding pass repairs the range of the other family as any pass does', async () => {
    const cluster = new RepairCluster({
      serviceClusterIPRanges: [RANGE, 'fd00::/112'],
      services: [withAddresses('s', '10.0.0.5', 'fd00::5')],
    });
    await cluster.store(SECONDARY, { range: 'fd00::/112', data: new Uint8Array(0) });
    await putCorrupt(cluster);
    const report = await cluster.pass(clusterIpRebuild);
    expect(countsByType(report)).toEqual({ repair: 1 });
    expect(report.changes).toEqual([
      expect.stringMatching('^rebuilt ranges/serviceips: '),
      expect.stringMatching('^saved ranges/secondaryserviceips: '),
    ]);
  });

  test('a rebuilding pass replaces a corrupt usage bitmap where the API servers allocate', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver', services: [withAddresses('s', '10.0.0.5')] });
    await putCorrupt(cluster);
    expect(await cluster.pass(clusterIpRebuild)).toMatchObject({ findings: [], errors: [] });
    expect(await cluster.stored(PRIMARY)).toMatchObject({ allocator: 'apiserver', data: fromBits([4]) });
  });

  test('a rebuilding pass in observe reports its save, and writes nothing', async () => {
    const cluster = new RepairCluster({ mode: 'observe' });
    await putCorrupt(cluster);
    const before = await cluster.table.get('test', PRIMARY);
    await cluster.pass(clusterIpRebuild);
    expect(cluster.wouldWrite).toEqual([expect.stringMatching('^rebuild ranges/serviceips: 0 taken in')]);
    expect(await cluster.table.get('test', PRIMARY)).toEqual(before);
  });
});

describe('a rebuilding pass writes nothing', () => {
  test.each<{ name: string; code: string; store: (cluster: RepairCluster) => Promise<unknown> }>([
    { name: 'the snapshot can be read', code: 'NotCorrupt', store: (cluster) => cluster.store(PRIMARY, readable) },
    { name: 'there is none yet', code: 'NotCorrupt', store: async () => {} },
    {
      name: 'it is of an older spec than what was saved',
      code: 'OlderSpec',
      store: (cluster) => cluster.store(PRIMARY, { range: 'garbage', data: new Uint8Array(0), generation: 2 }),
    },
    {
      name: 'a later version wrote the item',
      code: 'SchemaTooNew',
      store: (cluster) => putCorrupt(cluster, PRIMARY, 99),
    },
  ])('nothing is written if $name', async ({ code, store }) => {
    const cluster = new RepairCluster();
    await store(cluster);
    const before = await cluster.table.list('test', '');
    await expect(cluster.pass(clusterIpRebuild)).rejects.toMatchObject({ code });
    expect(await cluster.table.list('test', '')).toEqual(before);
  });

  test('nothing is written if another writer corrected the range while the Services were listed', async () => {
    const cluster = new RepairCluster();
    await putCorrupt(cluster);
    const kubernetes = listing(async function* putRight() {
      await cluster.store(PRIMARY, readable);
      yield withAddresses('s', '10.0.0.5');
    });
    const report = await cluster.pass(clusterIpRebuild, { kubernetes });
    expect(report).toMatchObject({ changes: [], errors: [{ code: 'Contended' }] });
    expect(await cluster.stored(PRIMARY)).toEqual(storedRange(readable));
  });

  test('nothing is written if the stored value is not an item of this program', async () => {
    const cluster = new RepairCluster();
    const { table } = cluster;
    const unreadable = tableWith(table, { get: () => Promise.reject(new TableError('Corrupt', 'no writeId')) });
    const report = await cluster.pass(clusterIpRebuild, { table: unreadable });
    expect(report).toMatchObject({ changes: [], errors: [{ code: 'CorruptSnapshot' }] });
  });
});

const readable = { range: RANGE, data: fromBits([7]) };
