import { expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { SLICE_REF } from '../../lib/cluster/published-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { OlderSpecError, portsFor, type Writes } from '../../lib/loops/writes.ts';
import type { AllocatorOfRecord } from '../../lib/spec/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { LEASES } from '../../lib/table/leases.ts';
import { isRangeKey, saveRange } from '../../lib/table/ranges.ts';
import { listing, withAddresses, withNodePorts } from '../repair/services.ts';
import { aSlice } from '../support/an-endpoints.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { memoryTable } from '../support/memory-table.ts';
import { aPassContext, READY } from '../support/pass-world.ts';
import { storedRange } from '../support/ranges.ts';

const NOW = 1_000_000_000;
const LOOPS = [systemNamespaces, kubernetesService, clusterIpRepair, nodePortRepair];
const ALLOCATORS: readonly AllocatorOfRecord[] = ['table', 'apiserver'];

const [ADDRESSES, PORTS] = [RANGE_KEYS.primary, RANGE_KEYS.nodePorts];
/** The keys that each loop writes to the table if it has everything to write. */
const WRITTEN: Readonly<Record<string, readonly string[]>> = {
  'system-namespaces': [],
  'kubernetes-service': [LEASES],
  'cluster-ip-repair': [ADDRESSES],
  'node-port-repair': [PORTS],
};

const cases = LOOPS.flatMap((loop) =>
  ALLOCATORS.flatMap((allocator) =>
    (['none', 'bookkeeping', 'all'] as const).map((writes) => ({ id: loop.id, loop, allocator, writes })),
  ),
);

/** Returns the keys that a pass is allowed to write to the table. */
function allowed(id: string, writes: Writes, allocator: AllocatorOfRecord): readonly string[] {
  if (writes === 'none') return [];
  const keys = WRITTEN[id] ?? [];
  return writes === 'all' || allocator === 'apiserver' ? keys : keys.filter((key) => key === LEASES);
}

async function leakingTable(allocator: AllocatorOfRecord): Promise<KeyValueTable> {
  const table = memoryTable({ nowMs: () => NOW });
  for (const [key, range] of [
    [ADDRESSES, '10.0.0.0/24'],
    [PORTS, '30000-32767'],
  ] as const) {
    await saveRange(table, 'demo', key, storedRange({ range, data: fromBits([9]), allocator }), undefined);
  }
  return table;
}

test.each(cases)(
  'a pass of $id with allocator $allocator makes only the allowed writes ($writes), and confirms once before its first write that it is still allowed to write',
  async (given) => {
    const { loop, allocator, writes } = given;
    const written: string[] = [];
    const wouldWrite: string[] = [];
    /** The number of writes before each confirmation. */
    const confirmed: number[] = [];
    const below = await leakingTable(allocator);
    const put: KeyValueTable['put'] = (item, previous) => {
      written.push(item.key);
      return below.put(item, previous);
    };
    const table = { ...below, put };
    const cluster = memoryCluster();
    const { services } = listing(() => [withAddresses('a', '10.0.0.5'), withNodePorts('b', 30_001)]);
    const kubernetes = { ...cluster.port, services };
    const ids = {
      nowMs: () => NOW,
      wouldWrite: (line: string) => wouldWrite.push(line),
      confirmWrites: async () => void confirmed.push(written.filter(isRangeKey).length + cluster.writes.length),
    };
    const ports = portsFor(writes, { table, kubernetes }, allocator, ids);
    const report = await loop.run(
      aPassContext({ spec: { allocator }, nowMs: () => NOW, probe: async () => READY, ...ports }),
    );

    expect(report.errors).toEqual([]);
    expect([...new Set(written)]).toEqual(allowed(loop.id, writes, allocator));
    const isOfCluster = loop === systemNamespaces || loop === kubernetesService;
    expect(cluster.writes.length > 0).toBe(writes === 'all' && isOfCluster);
    const isRangeWithheld = !isOfCluster && allocator === 'table' && writes !== 'all';
    expect(wouldWrite.length > 0).toBe((writes !== 'all' && isOfCluster) || isRangeWithheld);
    const hasChanges = writes === 'all' || allowed(loop.id, writes, allocator).length > 0;
    expect(report.changes.length > 0).toBe(hasChanges);
    const needsConfirmation = cluster.writes.length > 0 || written.some(isRangeKey);
    expect(confirmed).toEqual(needsConfirmation ? [0] : []);
  },
);

test.each<[string, (port: ClusterPort) => Promise<unknown>]>([
  ['create', (port) => port.create(aSlice([]))],
  ['update', (port) => port.update(aSlice([]))],
  ['merge patch', (port) => port.mergePatch(SLICE_REF, {})],
  ['delete', (port) => port.delete(aSlice([]))],
])('a pass that is no longer allowed to write makes no %s in its cluster', async (_, write) => {
  const cluster = memoryCluster([aSlice([])]);
  const ended = new OlderSpecError('OlderSpec', 'the spec was changed');
  const options = { nowMs: () => NOW, wouldWrite: () => {}, confirmWrites: () => Promise.reject(ended) };
  const ports = portsFor('all', { table: memoryTable(), kubernetes: cluster.port }, 'table', options);
  await expect(write(ports.kubernetes)).rejects.toBe(ended);
  expect(cluster.writes).toEqual([]);
});

test('a pass that writes for longer than ten seconds confirms again that it is allowed to write, and makes no write after a refusal', async () => {
  let nowMs = NOW;
  const answers = [Promise.resolve(), Promise.resolve(), 'paused', Promise.resolve()];
  const confirmWrites = async () => {
    const answer = await answers.shift();
    if (answer === 'paused') throw new OlderSpecError('OlderSpec', 'the cluster was paused');
  };
  const deletedAtMs: number[] = [];
  const record: ClusterPort['delete'] = async () => {
    deletedAtMs.push(nowMs - NOW);
    return 'deleted';
  };
  const port = { ...memoryCluster().port, delete: record };
  const options = { nowMs: () => nowMs, wouldWrite: () => {}, confirmWrites };
  const { kubernetes } = portsFor('all', { table: memoryTable(), kubernetes: port }, 'apiserver', options);
  const left: number[] = [];
  for (const afterMs of [0, 9_999, 1, 10_000, 20_000]) {
    nowMs += afterMs;
    await kubernetes.delete(aSlice([])).catch((error: Error) => expect(error.message).toBe('the cluster was paused'));
    left.push(answers.length);
  }
  expect(left).toEqual([3, 3, 2, 1, 1]);
  expect(deletedAtMs).toEqual([0, 9_999, 10_000]);
});
