import { describe, expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair, clusterIps } from '../../lib/loops/cluster-ip-repair.ts';
import { repairPass } from '../../lib/loops/repair.ts';
import { TableError } from '../../lib/table/errors.ts';
import { tableWith } from '../repair/faults.ts';
import { countsByType, RepairCluster } from '../repair/repair-cluster.ts';
import { service, withAddresses } from '../repair/services.ts';
import { ipRange, pickLowest } from '../support/ranges.ts';

const { primary: PRIMARY, secondary: SECONDARY } = RANGE_KEYS;

function snapshotWith(cidr: string, ...addresses: string[]) {
  const range = ipRange(cidr);
  for (const address of addresses) range.allocate(address);
  return range.snapshot();
}

async function addressesOf(cluster: RepairCluster, key: typeof PRIMARY | typeof SECONDARY): Promise<string[]> {
  const stored = await cluster.stored(key);
  if (stored === undefined) return [];
  const range = ipRange(stored.range);
  range.restore(stored);
  return [...range.items()];
}

describe('cluster IP repair', () => {
  test('initialises the range of an empty table', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24'] });
    const report = await cluster.pass(clusterIpRepair);
    expect(report).toEqual({
      changes: ['saved ranges/serviceips: 0 of 254 taken in 192.168.1.0/24'],
      findings: [],
      unlisted: new Map(),
      errors: [],
      counts: {
        services: 0,
        allocated: 0,
        free: 254,
        capacity: 254,
        leaks: 0,
        mayHaveLeaked: 0,
        held: 0,
        holdsEnded: 0,
      },
    });
    expect(await cluster.stored(PRIMARY)).toEqual({
      range: '192.168.1.0/24',
      data: new Uint8Array(0),
      allocator: 'table',
      generation: 1,
      strikes: { once: new Uint8Array(0), twice: new Uint8Array(0) },
      holds: [],
    });
  });

  test('writes nothing when nothing has changed', async () => {
    const cluster = new RepairCluster();
    cluster.services = [withAddresses('s', '10.0.0.5')];
    await cluster.pass(clusterIpRepair);
    const before = await cluster.table.get('test', PRIMARY);
    const report = await cluster.pass(clusterIpRepair);
    expect([report.changes, await cluster.table.get('test', PRIMARY)]).toEqual([[], before]);
  });

  test('tells in the words of the original that a save failed, and what it found all the same', async () => {
    const cluster = new RepairCluster();
    cluster.services = [withAddresses('s', '10.0.0.5')];
    const cause = new TableError('Throttled', 'test error');
    const table = tableWith(cluster.table, { put: () => Promise.reject(cause) });
    const report = await cluster.pass(clusterIpRepair, { table });
    expect(report.errors).toMatchObject([
      { code: 'Throttled', message: 'unable to persist the updated service IP allocations: test error', cause },
    ]);
    expect(countsByType(report)).toEqual({ repair: 1 });
  });

  test('keeps a leak for two passes and frees it in the third', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24'] });
    await cluster.store(PRIMARY, snapshotWith('192.168.1.0/24', '192.168.1.10'));
    const seen: unknown[] = [];
    for (let pass = 0; pass < 4; pass++) {
      const report = await cluster.pass(clusterIpRepair);
      seen.push([countsByType(report), await addressesOf(cluster, PRIMARY)]);
    }
    expect(seen).toEqual([
      [{ mayHaveLeaked: 1 }, ['192.168.1.10']],
      [{}, ['192.168.1.10']],
      [{ leak: 1 }, []],
      [{}, []],
    ]);
  });

  test('repairs what Services have, and tells of what it can not repair', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24'] });
    cluster.services = [
      withAddresses('one', '192.168.1.1'),
      withAddresses('two', '192.168.1.100'),
      withAddresses('three', '192.168.0.1'),
      withAddresses('four', ''),
      withAddresses('five', '192.168.1.1'),
      withAddresses('six', 'None'),
    ];
    const report = await cluster.pass(clusterIpRepair);
    expect(countsByType(report)).toEqual({ repair: 2, outOfRange: 1, duplicate: 1 });
    expect(await addressesOf(cluster, PRIMARY)).toEqual(['192.168.1.1', '192.168.1.100']);
    expect(report.counts).toMatchObject({ services: 6, allocated: 2, free: 252 });
  });

  test('an allocator that says that it is full ends the pass without a save', async () => {
    const cluster = new RepairCluster();
    cluster.services = [withAddresses('first', '10.0.0.5'), withAddresses('second', '10.0.0.6')];
    const refusing = (cidr: string) => {
      const range = ipRangeOf(cidr, pickLowest);
      if (range instanceof AllocatorError) return range;
      const allocate = range.allocate.bind(range);
      range.allocate = (address) =>
        address === '10.0.0.6' ? new AllocatorError('Full', 'range is full') : allocate(address);
      return range;
    };
    const report = await repairPass(clusterIps(refusing), cluster.context());
    expect(report.errors).toMatchObject([
      {
        code: 'Full',
        message:
          'the service CIDR 10.0.0.0/24 is full; you must widen the CIDR in order to create new services for Cluster IP [IPv4]:10.0.0.6',
      },
    ]);
    expect(countsByType(report)).toEqual({ repair: 1, full: 1 });
    expect(await cluster.stored(PRIMARY)).toBeUndefined();
  });

  test('finds that no address is left, without an abort', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['10.0.0.0/30'] });
    cluster.services = [withAddresses('a', '10.0.0.1'), withAddresses('b', '10.0.0.2')];
    const report = await cluster.pass(clusterIpRepair);
    expect([countsByType(report), report.errors]).toEqual([{ repair: 2, nothingFree: 1 }, []]);
    expect(await addressesOf(cluster, PRIMARY)).toEqual(['10.0.0.1', '10.0.0.2']);
  });
});

describe('cluster IP repair in two families', () => {
  test.each([
    { name: 'IPv4 alone', ranges: ['10.0.0.0/24'] as const, families: ['10.0.0.5'] },
    { name: 'IPv6 alone', ranges: ['fd00::/112'] as const, families: ['fd00::5'] },
    { name: 'IPv4 first', ranges: ['10.0.0.0/24', 'fd00::/112'] as const, families: ['10.0.0.5', 'fd00::5'] },
    { name: 'IPv6 first', ranges: ['fd00::/112', '10.0.0.0/24'] as const, families: ['fd00::5', '10.0.0.5'] },
  ])('reads the family of a range from the range: $name', async ({ ranges, families }) => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ranges });
    cluster.services = [withAddresses('s', ...families)];
    const report = await cluster.pass(clusterIpRepair);
    expect(countsByType(report)).toEqual({ repair: families.length });
    expect([...(await addressesOf(cluster, PRIMARY)), ...(await addressesOf(cluster, SECONDARY))]).toEqual(families);
  });

  test('initialises and saves both ranges', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24', '2000::/108'] });
    const report = await cluster.pass(clusterIpRepair);
    expect(report.changes).toEqual([
      'saved ranges/serviceips: 0 of 254 taken in 192.168.1.0/24',
      'saved ranges/secondaryserviceips: 0 of 65535 taken in 2000::/108',
    ]);
    expect(report.counts).toMatchObject({ capacity: 254, secondaryCapacity: 65_535, secondaryAllocated: 0 });
  });

  test('the first range that cannot be saved is the last that is tried', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24', '2000::/108'] });
    const tried: string[] = [];
    const table = tableWith(cluster.table, {
      put: (item) => {
        tried.push(item.key);
        return Promise.reject(new TableError('Throttled', 'test error'));
      },
    });
    const report = await cluster.pass(clusterIpRepair, { table });
    expect([tried, report.errors.length]).toEqual([[PRIMARY], 1]);
  });

  test('leaks of both families are freed together', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24', '2000::/108'] });
    await cluster.store(PRIMARY, snapshotWith('192.168.1.0/24', '192.168.1.10'));
    await cluster.store(SECONDARY, snapshotWith('2000::/108', '2000::1'));
    await cluster.pass(clusterIpRepair);
    await cluster.pass(clusterIpRepair);
    expect([await addressesOf(cluster, PRIMARY), await addressesOf(cluster, SECONDARY)]).toEqual([
      ['192.168.1.10'],
      ['2000::1'],
    ]);
    expect(countsByType(await cluster.pass(clusterIpRepair))).toEqual({ leak: 2 });
    expect([await addressesOf(cluster, PRIMARY), await addressesOf(cluster, SECONDARY)]).toEqual([[], []]);
  });

  test('repairs each family and tells of what it can not repair in either', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24', '2000::/108'] });
    cluster.services = [
      withAddresses('both', '192.168.1.1', '2000::1'),
      withAddresses('four', '192.168.1.100'),
      withAddresses('six', '2000::2'),
      withAddresses('half-out', '3000::3', '192.168.1.3'),
      withAddresses('out-four', '192.168.3.1'),
      withAddresses('out-six', '3000::1'),
      withAddresses('out-both', '192.168.3.2', '3000::2'),
      withAddresses('beyond-the-cap', '2000::1:0'),
      withAddresses('unset', ''),
      withAddresses('again', '192.168.1.1', '2000::2'),
      withAddresses('again-six', '2000::1'),
      service('headless', { clusterIP: 'None', clusterIPs: ['None'] }),
    ];
    const report = await cluster.pass(clusterIpRepair);
    expect(countsByType(report)).toEqual({ repair: 5, outOfRange: 6, duplicate: 3 });
    expect(report.counts).toMatchObject({ services: 12, free: 251, secondaryFree: 65_533 });
  });
});
