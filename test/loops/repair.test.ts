import { describe, expect, test } from '@jest/globals';
import { refused } from '../../lib/allocator/refusal.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair, clusterIps } from '../../lib/loops/cluster-ip-repair.ts';
import { NODE_PORTS, nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { repairPass } from '../../lib/loops/repair.ts';
import type { RepairKind } from '../../lib/loops/repair-kind.ts';
import type { ClaimedRange } from '../../lib/repair/claims.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { countsByType, RepairCluster, storedRange } from '../repair/repair-cluster.ts';
import { service, withAddresses, withNodePorts } from '../repair/services.ts';
import { itemsIn } from '../support/ranges.ts';

const { primary: PRIMARY, nodePorts: PORTS } = RANGE_KEYS;

/** Returns the addresses or ports that are allocated in the stored range. */
async function takenIn(cluster: RepairCluster, key: RangeKey): Promise<string[]> {
  const stored = await cluster.stored(key);
  return stored === undefined ? [] : itemsIn(stored);
}

/** Returns a range that refuses every claim after the first with this code. */
function failing(range: ClaimedRange, code: 'Full' | 'NotReady'): ClaimedRange {
  let claims = 0;
  return { ...range, claim: (item, by) => (claims++ > 0 ? refused(code, 'test error') : range.claim(item, by)) };
}

/** A repair loop, and its data for a range of 254 addresses or 101 ports. */
interface Repair {
  readonly loop: LoopDefinition;
  readonly key: RangeKey;
  readonly range: string;
  readonly size: number;
  /** Services with valid claims, a duplicate claim, a claim out of range, and no claim. */
  readonly services: readonly ServiceClaim[];
  /** The number of Services that a pass reads. */
  readonly listed: number;
  readonly taken: readonly string[];
  readonly cannotSave: string;
  readonly kind: RepairKind;
  readonly full: string;
}

const aCluster = (services: readonly ServiceClaim[] = []) =>
  new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24'], serviceNodePortRange: '100-200', services });

function repairs({ loop, key, range, size, ...repair }: Repair): void {
  test('a pass saves an empty range if the table contains no range', async () => {
    const cluster = aCluster();
    const counts = { services: 0, allocated: 0, free: size, capacity: size };
    expect(await cluster.pass(loop)).toEqual({
      ...{ changes: [`saved ${key}: 0 of ${size} taken in ${range}`], findings: [], unlisted: new Map(), errors: [] },
      counts: { ...counts, leaks: 0, mayHaveLeaked: 0, held: 0, holdsEnded: 0 },
    });
    expect(await cluster.stored(key)).toEqual(storedRange({ range, data: new Uint8Array(0) }));
  });

  test('if the range cannot be saved, a pass reports the error with the message of upstream, and still reports its findings', async () => {
    const cluster = aCluster(repair.services);
    const cause = new TableError('Throttled', 'test error');
    const table: KeyValueTable = { ...cluster.table, put: () => Promise.reject(cause) };
    const report = await cluster.pass(loop, { table });
    expect(report.errors).toMatchObject([{ code: 'Throttled', message: `${repair.cannotSave}: test error`, cause }]);
    expect(countsByType(report)).toMatchObject({ repair: repair.taken.length });
  });

  test('a pass does not report the address or port of a Service if it was allocated after the pass read the range', async () => {
    const cluster = aCluster(repair.services);
    await cluster.pass(loop);
    const newest = await cluster.stored(key);
    await cluster.store(key, { range, data: new Uint8Array(0) });
    let reads = 0;
    const get: typeof cluster.table.get = async (name, item) => {
      const old = await cluster.table.get(name, item);
      reads += Number(item === key);
      if (reads === 1 && item === key && newest !== undefined) await cluster.store(key, newest);
      return old;
    };
    const report = await cluster.pass(loop, { table: { ...cluster.table, get } });
    expect(countsByType(report)).not.toHaveProperty('repair');
    expect(await takenIn(cluster, key)).toEqual(repair.taken);
  });

  test('a pass records the valid addresses or ports of Services and reports the others, and the next pass writes nothing', async () => {
    const cluster = aCluster(repair.services);
    const report = await cluster.pass(loop);
    expect(countsByType(report)).toEqual({ repair: repair.taken.length, outOfRange: 1, duplicate: 1 });
    expect(await takenIn(cluster, key)).toEqual(repair.taken);
    const allocated = repair.taken.length;
    expect(report.counts).toMatchObject({ services: repair.listed, allocated, free: size - allocated });
    const before = await cluster.table.get('test', key);
    expect([(await cluster.pass(loop)).changes, await cluster.table.get('test', key)]).toEqual([[], before]);
  });

  test.each([
    { code: 'Full', message: repair.full },
    { code: 'NotReady', message: expect.stringMatching(/due to an unknown error, exiting: test error$/) },
  ] as const)('a pass saves nothing if an allocator refuses an item with $code', async ({ code, message }) => {
    const cluster = aCluster(repair.services);
    const enterClaims: RepairKind['enterClaims'] = (ranges) =>
      repair.kind.enterClaims(ranges.map((each) => failing(each, code)));
    const report = await repairPass({ ...repair.kind, enterClaims }, cluster.context());
    expect(report.errors).toMatchObject([{ code: code === 'Full' ? 'Full' : 'Unknown', message }]);
    expect(countsByType(report)).toEqual({ repair: 1, [code === 'Full' ? 'full' : 'unknown']: 1 });
    expect(await cluster.stored(key)).toBeUndefined();
  });
}

describe('cluster IP repair', () => {
  repairs({
    loop: clusterIpRepair,
    key: PRIMARY,
    range: '192.168.1.0/24',
    size: 254,
    services: [
      withAddresses('one', '192.168.1.1'),
      withAddresses('two', '192.168.1.100'),
      withAddresses('three', '192.168.0.1'),
      withAddresses('four', ''),
      withAddresses('five', '192.168.1.1'),
      withAddresses('six', 'None'),
    ],
    listed: 4,
    taken: ['192.168.1.1', '192.168.1.100'],
    cannotSave: 'unable to persist the updated service IP allocations',
    kind: clusterIps(),
    full: 'the service CIDR 192.168.1.0/24 is full; you must widen the CIDR in order to create new services for Cluster IP [IPv4]:192.168.1.100',
  });
});

describe('node port repair', () => {
  repairs({
    loop: nodePortRepair,
    key: PORTS,
    range: '100-200',
    size: 101,
    services: [
      withNodePorts('one', 111),
      withNodePorts('two', 122, 133),
      withNodePorts('three', 201),
      withNodePorts('four', 0),
      withNodePorts('five', 111),
      service('six', { type: 'LoadBalancer', healthCheckNodePort: 144 }),
      service('seven', { type: 'ClusterIP', ports: [{ protocol: 'TCP', nodePort: 150 }] }),
    ],
    listed: 7,
    taken: ['111', '122', '133', '144', '150'],
    cannotSave: 'unable to persist the updated port allocations',
    kind: NODE_PORTS,
    full: 'the port range 100-200 is full; you must widen the port range in order to create new services',
  });
});

describe('cluster IP repair in two families', () => {
  test('a pass does not save the second range if the first cannot be saved', async () => {
    const cluster = new RepairCluster({ serviceClusterIPRanges: ['192.168.1.0/24', '2000::/108'] });
    const tried: string[] = [];
    const table: KeyValueTable = {
      ...cluster.table,
      put: (item) => {
        tried.push(item.key);
        return Promise.reject(new TableError('Throttled', 'test error'));
      },
    };
    const report = await cluster.pass(clusterIpRepair, { table });
    expect([tried, report.errors.length]).toEqual([[PRIMARY], 1]);
  });
});
