import { describe, expect, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { countsByType, listing, withAddresses } from '../repair/services.ts';
import { PassWorld } from '../support/pass-world.ts';

const { primary: PRIMARY } = RANGE_KEYS;
const RANGE = '10.0.0.0/24';

test('if the spec has the default range, an audit uses the two CIDRs of the ServiceCIDR kubernetes', async () => {
  const cluster = new PassWorld();
  const services = () => [withAddresses('good', 'fd00:96::5', '10.96.0.5'), withAddresses('outside', 'fd00::5')];
  const kubernetes = listing(services, { kubernetes: ['fd00:96::/112', '10.96.0.0/24'] });
  const report = await cluster.pass(clusterIpRepair, { kubernetes });
  expect(report.findings).toMatchObject([{ type: 'outOfRange', item: 'fd00::5' }]);
  expect(await cluster.stored(PRIMARY)).toMatchObject({ range: 'fd00:96::/112' });
});

test('an audit uses the default range if the ServiceCIDR kubernetes is narrower than that range', async () => {
  const cluster = new PassWorld();
  const services = () => [withAddresses('first', '10.0.0.5'), withAddresses('later', '10.0.0.200')];
  const kubernetes = listing(services, { kubernetes: ['10.0.0.0/28', 'fd00::/112'] });
  expect(await cluster.pass(clusterIpRepair, { kubernetes })).toMatchObject({ findings: [], errors: [] });
  expect(await cluster.stored(PRIMARY)).toMatchObject({ range: RANGE });
});

test.each([
  { where: 'is forbidden', code: 'Forbidden', findings: [{ type: 'other', item: 'servicecidrs' }], outside: 1 },
  { where: 'is not served', code: 'Rejected', findings: [{ type: 'outOfRange', item: '10.9.0.5' }], outside: 0 },
] as const)('if the list of ServiceCIDRs $where, $outside addresses might be in a ServiceCIDR', async (given) => {
  const cluster = new PassWorld();
  const list = () => Promise.reject(new ClusterError(given.code, 'no'));
  const services = [withAddresses('good', '10.0.0.5'), withAddresses('unknown', '10.9.0.5')];
  const report = await cluster.pass(clusterIpRepair, { kubernetes: { ...listing(() => services), list } });
  expect(report).toMatchObject({ findings: given.findings, errors: [], counts: { allocated: 1 } });
  expect(report.counts['outside'] ?? 0).toBe(given.outside);
});

test('an audit counts only the addresses that Services claim now, and reports no leak', async () => {
  const services = [withAddresses('a', '10.0.0.5'), withAddresses('b', '10.0.0.6')];
  const cluster = new PassWorld().list(...services);
  await cluster.pass(clusterIpRepair);
  cluster.services = [withAddresses('a', '10.0.0.5'), withAddresses('c', '10.0.0.7')];
  const report = await cluster.pass(clusterIpRepair);
  expect([report.findings, report.counts]).toEqual([[], { services: 2, allocated: 2, free: 252, capacity: 254 }]);
  expect((await cluster.pass(clusterIpRepair)).changes).toEqual([]);
});

test('an audit succeeds even if its write conflicts with the write of another audit', async () => {
  const cluster = new PassWorld();
  const table: KeyValueTable = { ...cluster.table, put: async () => ({ outcome: 'lost' }) };
  expect(await cluster.pass(clusterIpRepair, { table })).toMatchObject({ changes: [], errors: [] });
});

describe.each(['apiserver', 'table'] as const)('an audit with ServiceCIDRs and allocator: %s', (allocator) => {
  const TWO = { kubernetes: [RANGE], more: ['10.0.1.0/24'] };

  test.each([
    { name: 'a range in the spec that contains both ServiceCIDRs', range: '10.0.0.0/23', outside: 0 },
    { name: 'a range in the spec that is within the first ServiceCIDR', range: '10.0.0.0/28', outside: 1 },
    { name: 'a range in the spec that is outside both ServiceCIDRs', range: '10.7.0.0/24', outside: 2 },
  ])('with $name, an audit reports no address of a ServiceCIDR as out of range', async ({ range, outside }) => {
    const cluster = new PassWorld({ allocator, serviceClusterIPRanges: [range] });
    const services = [withAddresses('first', '10.0.0.5'), withAddresses('second', '10.0.1.5')];
    const report = await cluster.pass(clusterIpRepair, { kubernetes: listing(() => services, TWO) });
    const inside = 2 - outside;
    expect(countsByType(report)).toEqual(allocator === 'table' && inside > 0 ? { repair: inside } : {});
    // With `allocator: apiserver`, the counts are of both ServiceCIDRs, whatever range the spec contains.
    const counts = allocator === 'table' ? { allocated: inside } : { allocated: 2, capacity: 508 };
    expect(report).toMatchObject({ errors: [], counts: { ...counts, ...(outside > 0 && { outside }) } });
    expect(await cluster.stored(PRIMARY)).toMatchObject({ range });
  });

  test('an address outside the range of the spec and outside every ServiceCIDR is reported as out of range', async () => {
    const cluster = new PassWorld({ allocator, serviceClusterIPRanges: ['10.0.0.0/23'] });
    const services = [withAddresses('outside', '10.0.2.5'), withAddresses('broadcast', '10.0.1.255')];
    const report = await cluster.pass(clusterIpRepair, { kubernetes: listing(() => services, TWO) });
    const found = report.findings.map(({ type, item }) => `${type} ${item}`);
    expect(found).toEqual(['outOfRange 10.0.2.5', 'outOfRange 10.0.1.255']);
  });
});
