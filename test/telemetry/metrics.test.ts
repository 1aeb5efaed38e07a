import { describe, expect, test } from '@jest/globals';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { FindingType } from '../../lib/cluster/finding.ts';
import { failedPassCounter, findingCounter, samplesOf } from '../../lib/telemetry/telemetry.ts';

const IP = 'apiserver_clusterip_repair_ip_errors_total';
const PORT = 'apiserver_nodeport_repair_port_errors_total';

test.each<{ loop: Loop; types: FindingType[]; name: string }>([
  {
    loop: 'cluster-ip-repair',
    types: ['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown', 'invalid'],
    name: IP,
  },
  { loop: 'cluster-ip-repair', types: ['mayHaveLeaked', 'nothingFree', 'other'], name: 'findings' },
  { loop: 'node-port-repair', types: ['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown'], name: PORT },
  { loop: 'node-port-repair', types: ['invalid', 'mayHaveLeaked', 'nothingFree'], name: 'findings' },
  { loop: 'kubernetes-service', types: ['twoOwners', 'oddProbe'], name: 'findings' },
])('findings $types of $loop count under the metric $name', ({ loop, types, name }) => {
  for (const type of types) expect(findingCounter(loop, type)).toBe(name);
});

test('only the repairs have a counter of failed passes with the name of upstream', () => {
  expect(failedPassCounter('cluster-ip-repair')).toBe('apiserver_clusterip_repair_reconcile_errors_total');
  expect(failedPassCounter('node-port-repair')).toBe('apiserver_nodeport_repair_reconcile_errors_total');
  expect(failedPassCounter('kubernetes-service')).toBeUndefined();
});

describe('samplesOf', () => {
  test.each([
    { name: 'no sample without leases and ranges', counts: { services: 3 }, samples: {} },
    { name: 'the number of active leases', counts: { addresses: 3, activeLeases: 2 }, samples: { activeLeases: 2 } },
    {
      name: 'the used share of one range',
      counts: { services: 3, allocated: 3, free: 251, capacity: 254 },
      samples: { fullestRangePercent: 1.1 },
    },
    {
      name: 'the used share of the fuller of two ranges',
      counts: { allocated: 3, capacity: 254, secondaryAllocated: 128, secondaryCapacity: 256 },
      samples: { fullestRangePercent: 50 },
    },
    {
      name: 'less than 100 % for a range that is almost full',
      counts: { allocated: 65_533, capacity: 65_534 },
      samples: { fullestRangePercent: 99.9 },
    },
    { name: 'no sample for a range without capacity', counts: { allocated: 0, capacity: 0 }, samples: {} },
  ])('samplesOf returns $name', ({ counts, samples }) => {
    expect(samplesOf(counts as Readonly<Record<string, number>>)).toEqual(samples);
  });
});
