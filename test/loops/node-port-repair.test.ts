import { describe, expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { nodePortRepair, nodePorts } from '../../lib/loops/node-port-repair.ts';
import { repairPass } from '../../lib/loops/repair.ts';
import { TableError } from '../../lib/table/errors.ts';
import { tableWith } from '../repair/faults.ts';
import { countsByType, RepairCluster } from '../repair/repair-cluster.ts';
import { service, withNodePorts } from '../repair/services.ts';
import { portRange } from '../support/ranges.ts';

const KEY = RANGE_KEYS.nodePorts;

function snapshotWith(text: string, ...ports: number[]) {
  const range = portRange(text);
  for (const port of ports) range.allocate(port);
  return range.snapshot();
}

async function portsOf(cluster: RepairCluster): Promise<number[]> {
  const stored = await cluster.stored(KEY);
  if (stored === undefined) return [];
  const range = portRange(stored.range);
  range.restore(stored);
  return [...range.items()];
}

describe('node port repair', () => {
  test('initialises the range of an empty table', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    const report = await cluster.pass(nodePortRepair);
    expect(report.changes).toEqual(['saved ranges/servicenodeports: 0 of 101 taken in 100-200']);
    expect(report.counts).toEqual({
      services: 0,
      allocated: 0,
      free: 101,
      capacity: 101,
      leaks: 0,
      mayHaveLeaked: 0,
      held: 0,
      holdsEnded: 0,
    });
    expect(await cluster.stored(KEY)).toMatchObject({ range: '100-200', data: new Uint8Array(0), allocator: 'table' });
  });

  test('tells in the words of the original that a save failed', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    const cause = new TableError('Throttled', 'test error');
    const table = tableWith(cluster.table, { put: () => Promise.reject(cause) });
    expect((await cluster.pass(nodePortRepair, { table })).errors).toMatchObject([
      { code: 'Throttled', message: 'unable to persist the updated port allocations: test error', cause },
    ]);
  });

  test('keeps a leak for two passes and frees it in the third', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    await cluster.store(KEY, snapshotWith('100-200', 111));
    const seen: unknown[] = [];
    for (let pass = 0; pass < 3; pass++) {
      const report = await cluster.pass(nodePortRepair);
      seen.push([countsByType(report), await portsOf(cluster)]);
    }
    expect(seen).toEqual([
      [{ mayHaveLeaked: 1 }, [111]],
      [{}, [111]],
      [{ leak: 1 }, []],
    ]);
  });

  test('repairs what Services have, and tells of what it can not repair', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    cluster.services = [
      withNodePorts('one', 111),
      withNodePorts('two', 122, 133),
      withNodePorts('three', 201),
      withNodePorts('four', 0),
      withNodePorts('five', 111),
      service('six', { type: 'LoadBalancer', healthCheckNodePort: 144 }),
    ];
    const report = await cluster.pass(nodePortRepair);
    expect(countsByType(report)).toEqual({ repair: 4, outOfRange: 1, duplicate: 1 });
    expect(await portsOf(cluster)).toEqual([111, 122, 133, 144]);
    expect(report.counts).toMatchObject({ services: 6, allocated: 4, free: 97 });
  });

  test('counts a port of a Service of any type', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    cluster.services = [service('s', { type: 'ClusterIP', ports: [{ protocol: 'TCP', nodePort: 150 }] })];
    await cluster.pass(nodePortRepair);
    expect(await portsOf(cluster)).toEqual([150]);
  });

  test('an allocator that fails for an unknown reason ends the pass without a save', async () => {
    const cluster = new RepairCluster({ serviceNodePortRange: '100-200' });
    cluster.services = [withNodePorts('s', 111)];
    const failing = (text: string) => {
      const range = portRange(text);
      range.allocate = () => new AllocatorError('NotReady', 'test error');
      return range;
    };
    const report = await repairPass(nodePorts(failing), cluster.context());
    expect(report.errors).toMatchObject([
      {
        code: 'Unknown',
        message: 'unable to allocate port 111 for service s/a due to an unknown error, exiting: test error',
      },
    ]);
    expect([countsByType(report), await cluster.stored(KEY)]).toEqual([{ unknown: 1 }, undefined]);
  });
});
