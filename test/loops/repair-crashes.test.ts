import { describe, expect, test } from '@jest/globals';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { Cut, cutServices, cutTable } from '../repair/faults.ts';
import { RepairCluster } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';

const LIVE = [4, 5];
const LEAKED_LONG_AGO = 8;
const LEAKED = 9;

interface Subject {
  readonly loop: typeof clusterIpRepair;
  readonly keys: readonly RangeKey[];
  readonly ranges: readonly string[];
  readonly services: readonly ServiceClaim[];
}

const subjects: Subject[] = [
  {
    loop: clusterIpRepair,
    keys: [RANGE_KEYS.primary, RANGE_KEYS.secondary],
    ranges: ['10.0.0.0/24', 'fd00::/112'],
    services: [withAddresses('a', '10.0.0.5', 'fd00::5'), withAddresses('b', '10.0.0.6', 'fd00::6')],
  },
  {
    loop: nodePortRepair,
    keys: [RANGE_KEYS.nodePorts],
    ranges: ['30000-32767'],
    services: [withNodePorts('a', 30_004), withNodePorts('b', 30_005)],
  },
];

/** A range that knows of one Service of two, and holds two leaks. */
async function clusterOf({ keys, ranges, services }: Subject): Promise<RepairCluster> {
  const cluster = new RepairCluster({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'], services });
  for (const [index, key] of keys.entries()) {
    await cluster.store(key, {
      range: ranges[index] ?? '',
      data: fromBits([4, LEAKED_LONG_AGO, LEAKED]),
      strikes: { once: fromBits([]), twice: fromBits([LEAKED_LONG_AGO]) },
    });
  }
  return cluster;
}

async function takenIn(cluster: RepairCluster, keys: readonly RangeKey[]): Promise<number[][]> {
  const ranges = await Promise.all(keys.map((key) => cluster.stored(key)));
  return ranges.map((stored) => [...bitsOf(stored?.data ?? new Uint8Array(0))]);
}

/** One pass that ends at the cut, and four that do not. Whether there was anything to cut. */
async function survives(subject: Subject, cut: Cut): Promise<boolean> {
  const cluster = await clusterOf(subject);
  const kubernetes = cutServices(cluster.services, cut);
  await cluster.pass(subject.loop, { table: cutTable(cluster.table, cut), kubernetes }).catch(() => undefined);
  for (const taken of await takenIn(cluster, subject.keys)) expect(taken).toContain(LIVE[0]);

  for (let pass = 0; pass < 4; pass++) {
    expect((await cluster.pass(subject.loop)).errors).toEqual([]);
    for (const taken of await takenIn(cluster, subject.keys)) expect(taken).toEqual(expect.arrayContaining(LIVE));
  }
  expect(await takenIn(cluster, subject.keys)).toEqual(subject.keys.map(() => LIVE));
  return cut.happened;
}

describe.each(subjects)('a process that ends in the middle of a pass of $loop.id', (subject) => {
  test.each(['before', 'after'] as const)(
    '%s any call frees nothing live, and the next passes end clean',
    async (when) => {
      let calls = 0;
      while (await survives(subject, new Cut(calls, when))) calls++;
      // Ranges, each Service and the end of their list, saves: every one of them was a place to end.
      expect(calls).toBe(2 * subject.keys.length + subject.services.length + 1);
    },
  );
});
