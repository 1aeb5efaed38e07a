import { describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { tableWith } from '../repair/faults.ts';
import { countsByType, listing, RepairCluster } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';

const { primary: PRIMARY, nodePorts: NODE_PORTS } = RANGE_KEYS;
const RANGE = '10.0.0.0/24';

describe('an audit', () => {
  test('checks cluster IPs, and does not warn of what is new', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver', serviceClusterIPRanges: [RANGE] });
    cluster.services = [
      withAddresses('good', '10.0.0.5'),
      withAddresses('invalid', 'not-b4nd'),
      withAddresses('foreign', 'fd00::5'),
      withAddresses('twice', '10.0.0.5'),
      withAddresses('outside', '10.0.0.255'),
    ];
    const report = await cluster.pass(clusterIpRepair);
    expect(report.findings.map(({ event }) => event?.reason)).toEqual([
      'ClusterIPNotValid',
      'ClusterIPNotValid',
      'ClusterIPAlreadyAllocated',
      'ClusterIPOutOfRange',
    ]);
    expect(report).toMatchObject({ errors: [], changes: ['saved ranges/serviceips: 1 claimed in 10.0.0.0/24'] });
    expect(await cluster.stored(PRIMARY)).toMatchObject({ data: fromBits([4]), allocator: 'apiserver' });
  });

  test('checks node ports', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver', serviceNodePortRange: '30000-30001' });
    cluster.services = [withNodePorts('a', 30_000, 30_001), withNodePorts('b', 30_001), withNodePorts('c', 80)];
    expect(countsByType(await cluster.pass(nodePortRepair))).toEqual({ duplicate: 1, outOfRange: 1, nothingFree: 1 });
    expect(await cluster.stored(NODE_PORTS)).toMatchObject({ data: fromBits([0, 1]), allocator: 'apiserver' });
  });

  test.each([
    { name: 'one', cidrs: ['10.96.0.0/24'], addresses: ['10.96.0.5'], out: '10.0.0.5' },
    { name: 'two', cidrs: ['fd00:96::/112', '10.96.0.0/24'], addresses: ['fd00:96::5', '10.96.0.5'], out: 'fd00::5' },
  ])(
    'checks cluster IPs against the ServiceCIDR of the cluster, with $name range',
    async ({ cidrs, addresses, out }) => {
      const cluster = new RepairCluster({ allocator: 'apiserver', serviceClusterIPRanges: [RANGE] });
      cluster.services = [withAddresses('good', ...addresses), withAddresses('outside', out)];
      const kubernetes = { ...listing(() => cluster.services), get: async () => ({ spec: { cidrs } }) as never };
      const report = await cluster.pass(clusterIpRepair, { kubernetes });
      expect(report.findings).toMatchObject([{ type: 'outOfRange', item: out }]);
      expect(await cluster.stored(PRIMARY)).toMatchObject({ range: cidrs[0] });
    },
  );

  test('checks cluster IPs against the spec where the ServiceCIDR may not be read', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver', serviceClusterIPRanges: [RANGE] });
    const forbidden = () => Promise.reject(new ClusterError('Forbidden', 'no'));
    const kubernetes = { ...listing(() => [withAddresses('good', '10.0.0.5')]), get: forbidden };
    expect(await cluster.pass(clusterIpRepair, { kubernetes })).toMatchObject({ findings: [], errors: [] });
  });

  test('counts what came and went since the last one, and frees nothing', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver' });
    cluster.services = [withAddresses('a', '10.0.0.5'), withAddresses('b', '10.0.0.6')];
    await cluster.pass(clusterIpRepair);
    cluster.services = [withAddresses('a', '10.0.0.5'), withAddresses('c', '10.0.0.7')];
    const report = await cluster.pass(clusterIpRepair);
    expect([report.findings, report.counts]).toEqual([
      [],
      { services: 2, allocated: 2, free: 252, capacity: 254, newClaims: 1, goneClaims: 1 },
    ]);
    expect((await cluster.pass(clusterIpRepair)).changes).toEqual([]);
  });

  test('of an IPv6 /64 accepts addresses beyond a bitmap, and keeps no usage bitmap', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver', serviceClusterIPRanges: ['fd00::/64'] });
    cluster.services = [withAddresses('a', 'fd00::1:2:3')];
    const report = await cluster.pass(clusterIpRepair);
    expect(report).toMatchObject({ findings: [], changes: [], counts: { allocated: 1 } });
    expect(await cluster.stored(PRIMARY)).toBeUndefined();
  });

  test('that another audit overtook accepts its usage bitmap', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver' });
    const table = tableWith(cluster.table, { put: async () => ({ outcome: 'lost' }) });
    expect(await cluster.pass(clusterIpRepair, { table })).toMatchObject({ changes: [], errors: [] });
  });

  test('under an older spec than the stored usage bitmap ends without a write', async () => {
    const cluster = new RepairCluster({ allocator: 'apiserver' });
    await cluster.store(PRIMARY, { range: RANGE, data: fromBits([1]), generation: 2 });
    const item = await cluster.table.get('test', PRIMARY);
    await expect(cluster.pass(clusterIpRepair)).rejects.toMatchObject({ code: 'OlderSpec' });
    expect(await cluster.table.get('test', PRIMARY)).toEqual(item);
  });
});
