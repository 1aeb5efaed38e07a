import { describe, expect, test } from '@jest/globals';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { type ImportReport, importRanges, previewImport } from '../../lib/exchange/import-ranges.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import type { PassReport } from '../../lib/loops/pass.ts';
import { pauseCluster, registerCluster, unregisterCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { Cut, cutTable, tableWith } from '../repair/faults.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { memoryTable } from '../support/memory-table.ts';
import { read, refusal, STORED_SERVICE_IPS } from './files.ts';
import {
  addressesOf,
  allOf,
  CLUSTER,
  fileOf,
  NOW_MS,
  pass,
  passOf,
  portsOf,
  register,
  registered,
  SPEC,
  stateOf,
  TAKEN,
} from './import-world.ts';

const { primary: PRIMARY, nodePorts: NODE_PORTS } = RANGE_KEYS;
const OPTIONS = { ...AT_ONCE, nowMs: NOW_MS };
/** They have addresses and ports of the import, and one of each that is not in it. */
const SERVICES = [withAddresses('imported', '10.0.0.7'), withAddresses('newer', '10.0.0.9'), withNodePorts('p', 30006)];

async function imported(table: KeyValueTable, file = fileOf()): Promise<ImportReport> {
  const report = await importRanges(table, CLUSTER, file, OPTIONS);
  if (report instanceof ExchangeError) throw report;
  return report;
}

async function bits(table: KeyValueTable, key: (typeof RANGE_KEYS)[keyof typeof RANGE_KEYS]): Promise<number[]> {
  return [...bitsOf((await readRange(table, CLUSTER, key))?.stored.data ?? new Uint8Array(0))];
}

describe('An import', () => {
  test('sets what is missing, and closes allocation until a pass of the new generation has saved', async () => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former, SERVICES);
    expect(await addressesOf(table, former).allocateOne('10.0.0.1')).toBeUndefined();

    const report = await imported(table);
    expect(report).toMatchObject({ changes: true, warnings: [], written: [PRIMARY, NODE_PORTS] });
    expect(report.plans.map(({ toSet }) => [...bitsOf(toSet)])).toEqual([
      [5, 7],
      [5, 7],
    ]);
    const present = await registered(table);
    expect(present.rangesGeneration).toBe(report.opensAtGeneration);
    expect(await stateOf(addressesOf(table, former))).toBe('older');
    expect(await stateOf(portsOf(table, former))).toBe('older');
    expect(await stateOf(addressesOf(table, present))).toBe('closed');
    expect(await stateOf(portsOf(table, present))).toBe('closed');
    expect(await bits(table, PRIMARY)).toEqual([0, 5, 6, 7, 8]);

    await expect(pass(table, former, SERVICES)).rejects.toMatchObject({ code: 'OlderSpec' });
    const reports = await pass(table, present, SERVICES);
    expect(reports.flatMap(({ errors }) => errors)).toEqual([]);
    const given = [...(await allOf(addressesOf(table, present))), ...(await allOf(portsOf(table, present)))];
    expect(given).toHaveLength(9 + 13);
    for (const taken of ['10.0.0.1', '10.0.0.9', ...TAKEN.addresses, ...TAKEN.ports])
      expect(given).not.toContain(taken);
  });

  test('goes into a cluster that no pass has ever saved', async () => {
    const table = memoryTable();
    await register(table);
    await imported(table);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7]);
    const present = await registered(table);
    expect(await stateOf(addressesOf(table, present))).toBe('closed');
    await pass(table, present, SERVICES);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7, 8]);
    expect(await stateOf(addressesOf(table, present))).toBe('open');
  });

  test('is shown before, without a write', async () => {
    const table = memoryTable();
    await register(table);
    const before = await table.list(CLUSTER, '');
    expect(await previewImport(table, CLUSTER, fileOf(), NOW_MS)).toMatchObject({
      changes: true,
      plans: [{ key: PRIMARY, toSet: fromBits([5, 6, 7]) }, { key: NODE_PORTS }],
    });
    expect(await table.list(CLUSTER, '')).toEqual(before);
    expect((await registered(table)).generation).toBe(1);
  });

  test('that changes nothing closes nothing', async () => {
    const table = memoryTable();
    await register(table);
    await imported(table);
    const services = [withAddresses('a', '10.0.0.7'), withAddresses('b', '10.0.0.8'), withNodePorts('p', 30006, 30007)];
    await pass(table, await registered(table), services);
    const present = await registered(table);
    const report = await imported(table);
    expect(report).toMatchObject({ changes: false, written: [] });
    expect(report.opensAtGeneration).toBeUndefined();
    expect(await registered(table)).toEqual(present);
    expect(await stateOf(addressesOf(table, present))).toBe('open');
  });

  test('keeps its holds through the pass that opens', async () => {
    const table = memoryTable();
    await register(table);
    await imported(table);
    await pass(table, await registered(table), SERVICES);
    const held = await addressesOf(table, await registered(table)).lookUp(['10.0.0.6']);
    expect(held).toMatchObject([{ taken: true, hold: { owner: 'ci' } }]);
  });

  test('closes the ranges that it does not write as well', async () => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former);
    expect(await imported(table, fileOf([{}]))).toMatchObject({ written: [PRIMARY] });
    expect(await stateOf(portsOf(table, await registered(table)))).toBe('closed');
  });

  test.each([
    ['a change of the spec that leaves ranges alone', () => undefined],
    ['a registration that is removed and made again', (table: KeyValueTable) => unregisterCluster(table, CLUSTER)],
  ])('outlives %s', async (_, meanwhile) => {
    const table = memoryTable();
    await pass(table, await register(table));
    await imported(table);
    await meanwhile(table);
    const present = await register(table, { ...SPEC, maxEventsPerPass: 7 });
    expect(await stateOf(addressesOf(table, present))).toBe('closed');
    await pass(table, present);
    expect(await stateOf(addressesOf(table, present))).toBe('open');
  });

  test('ignores what an audit saved, once the table allocates', async () => {
    const table = memoryTable();
    await pass(table, await register(table, { ...SPEC, allocator: 'apiserver' }), SERVICES);
    await register(table);
    await imported(table);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7]);
    await pass(table, await registered(table), SERVICES);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7, 8]);
  });

  test('accepts what an API server keeps in etcd, with a warning', async () => {
    const table = memoryTable();
    await register(table, { ...SPEC, serviceClusterIPRanges: ['10.0.0.0/24'] });
    const report = await imported(table, read(STORED_SERVICE_IPS));
    expect(report.warnings).toEqual([expect.stringContaining('Kubernetes 1.34 and later no longer write')]);
    expect(await bits(table, PRIMARY)).toEqual([0, 81, 139, 241]);
  });
});

describe('An import is refused', () => {
  test.each([
    { what: 'without a registration', spec: undefined, expected: refusal('NotRegistered', CLUSTER) },
    {
      what: 'where API servers allocate',
      spec: { ...SPEC, allocator: 'apiserver' as const },
      expected: refusal('NoRecord', 'apiserver'),
    },
    {
      what: 'into another range',
      spec: { ...SPEC, serviceClusterIPRanges: ['10.0.0.0/27'] as const },
      expected: refusal('OtherRange', '10.0.0.0/27 (ranges/serviceips)'),
    },
  ])('$what, and nothing is written', async ({ spec, expected }) => {
    const table = memoryTable();
    if (spec !== undefined) await register(table, spec);
    const before = await table.list('#clusters', '');
    expect(await importRanges(table, CLUSTER, fileOf(), OPTIONS)).toEqual(expected);
    expect(await table.list('#clusters', '')).toEqual(before);
    expect(await table.list(CLUSTER, '')).toEqual([]);
  });

  test('of a range that the cluster does not have', async () => {
    const table = memoryTable();
    await register(table);
    const file = fileOf([{ key: RANGE_KEYS.secondary }]);
    expect(await importRanges(table, CLUSTER, file, OPTIONS)).toEqual(refusal('OtherRange'));
    const allocation = { range: '10.9.0.0/16', data: new Uint8Array(0) };
    const other = { kind: 'RangeAllocation', allocation } as const;
    expect(await importRanges(table, CLUSTER, other, OPTIONS)).toEqual(refusal('OtherRange', '10.9.0.0/16'));
  });

  test.each([
    { what: 'before it closes', at: '#clusters' },
    { what: 'after it closed, and a pass has saved', at: PRIMARY },
  ])('when the ranges of the spec become others $what', async ({ at }) => {
    const table = memoryTable();
    await pass(table, await register(table));
    let isDone = false;
    const interrupted = tableWith(table, {
      put: async (item, previous) => {
        if (!isDone && (item.cluster === at || item.key === at)) {
          isDone = true;
          await registerCluster(table, aClusterSpec({ ...SPEC, serviceNodePortRange: '31000-31015' }), AT_ONCE);
          await pass(table, await registered(table));
        }
        return table.put(item, previous);
      },
    });
    expect(await importRanges(interrupted, CLUSTER, fileOf(), OPTIONS)).toEqual(
      refusal('ChangedMeanwhile', 'Import again'),
    );
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('open');
    expect(await bits(table, PRIMARY)).toEqual([0]);
  });
});

describe('What an import warns of', () => {
  test('is a file of another cluster, and a cluster that only observes or is paused', async () => {
    const table = memoryTable();
    await register(table, { ...SPEC, mode: 'observe' });
    await pauseCluster(table, CLUSTER, { untilMs: NOW_MS + 1, reason: 'r', by: 'b' });
    const file = fileOf();
    if (file.kind !== 'ClusterRanges') throw new Error('another file');
    const other = { ...file, clusterRanges: { ...file.clusterRanges, cluster: 'other' } };
    const { warnings } = await imported(table, other);
    const expected = ['exported from cluster other', 'observe', 'is paused until'];
    expect(warnings).toEqual(expected.map((text) => expect.stringContaining(text)));
  });

  test.each([
    { range: '10.0.0.0/28', created: undefined, expected: ['has no creation time'] },
    { range: '10.0.0.0/28', created: '2019-03-01T12:00:00Z', expected: ['created at 2019-03-01T12:00:00Z'] },
    { range: '30000-30015', created: '2019-03-01T12:00:00Z', expected: [] },
  ])('is the age of a RangeAllocation of $range, made $created', async ({ range, created, expected }) => {
    const table = memoryTable();
    await register(table);
    const allocation = { range, data: fromBits([1]), ...(created !== undefined && { createdAt: created }) };
    const { warnings } = await imported(table, { kind: 'RangeAllocation', allocation });
    expect(warnings).toEqual(expected.map((text) => expect.stringContaining(text)));
  });
});

describe('An import beside others', () => {
  /** An import with `meanwhile` run right before its write of that key. */
  async function importDuring(table: KeyValueTable, key: string, meanwhile: () => Promise<unknown>) {
    let isDone = false;
    const interrupted = tableWith(table, {
      put: async (item, previous) => {
        if (!isDone && item.key === key) {
          isDone = true;
          await meanwhile();
        }
        return table.put(item, previous);
      },
    });
    return importRanges(interrupted, CLUSTER, fileOf(), OPTIONS);
  }

  test('keeps what a function of the former registration allocates until the bits go in', async () => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former);
    await importDuring(table, PRIMARY, async () => {
      expect(await stateOf(addressesOf(table, await registered(table)))).toBe('closed');
      expect(await addressesOf(table, former).allocateOne('10.0.0.2')).toBeUndefined();
    });
    expect(await bits(table, PRIMARY)).toEqual([1, 5, 6, 7]);
    expect(await stateOf(addressesOf(table, former))).toBe('older');
  });

  test('closes again what a pass opened before the bits went in', async () => {
    const table = memoryTable();
    await pass(table, await register(table));
    await importDuring(table, PRIMARY, async () => {
      const present = await registered(table);
      await pass(table, present);
      expect(await addressesOf(table, present).allocateOne('10.0.0.2')).toBeUndefined();
    });
    const present = await registered(table);
    expect(await stateOf(addressesOf(table, present))).toBe('closed');
    expect(await bits(table, PRIMARY)).toEqual([1, 5, 6, 7]);
    await pass(table, present);
    expect(await stateOf(addressesOf(table, present))).toBe('open');
  });

  test('is not merged into by a pass of the former registration', async () => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former);
    const late = lateAt(table, PRIMARY);
    const passing = passOf(clusterIpRepair, late.table, former, SERVICES);
    await late.reached;
    await imported(table);
    late.goOn();
    expect((await passing).errors).toEqual([expect.objectContaining({ code: 'OlderSpec' })]);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7]);
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('closed');
  });

  test('is opened by a pass of its registration that had read the range before the bits went in, and saves after', async () => {
    const table = memoryTable();
    await pass(table, await register(table));
    const late = lateAt(table, PRIMARY);
    let passing: Promise<PassReport> | undefined;
    await importDuring(table, PRIMARY, async () => {
      passing = passOf(clusterIpRepair, late.table, await registered(table), SERVICES);
      await late.reached;
    });
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('closed');
    late.goOn();
    expect((await passing)?.errors).toEqual([]);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7, 8]);
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('open');
  });

  test('clears strikes, so that no pass frees what it brought', async () => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former);
    const leak = storedRange({
      range: '10.0.0.0/28',
      data: fromBits([3, 6]),
      generation: former.rangesGeneration,
      strikes: { once: fromBits([]), twice: fromBits([3, 6]) },
    });
    await saveRange(table, CLUSTER, PRIMARY, leak, await table.get(CLUSTER, PRIMARY));
    await imported(table);
    await pass(table, await registered(table));
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7]);
  });

  test('by another writer at the same time leaves both, and at most one must be repeated', async () => {
    const table = memoryTable();
    await pass(table, await register(table));
    const file = fileOf([{ data: fromBits([10]), holds: [] }]);
    const first = await importDuring(table, PRIMARY, () => importRanges(table, CLUSTER, file, OPTIONS));
    expect(first).toEqual(refusal('ChangedMeanwhile', 'Import again'));
    await imported(table);
    expect(await bits(table, PRIMARY)).toEqual([5, 6, 7, 10]);
    await pass(table, await registered(table));
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('open');
  });

  test('with a write of unclear outcome asks to import again', async () => {
    const table = memoryTable();
    await pass(table, await register(table));
    const unclear = tableWith(table, { put: async () => ({ outcome: 'unclear' }) });
    await expect(importRanges(unclear, CLUSTER, fileOf(), OPTIONS)).rejects.toMatchObject({
      code: 'Contended',
      message: expect.stringContaining('Import again'),
    });
  });
});

/** A table whose first write of that key waits until it is told to go on. */
function lateAt(table: KeyValueTable, key: string) {
  const reached = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const put: KeyValueTable['put'] = async (item, previous) => {
    if (item.key === key) {
      reached.resolve();
      await goOn.promise;
    }
    return table.put(item, previous);
  };
  return { table: tableWith(table, { put }), reached: reached.promise, goOn: goOn.resolve };
}

describe('An import that ends at any call', () => {
  const CUTS = Array.from({ length: 14 }, (_, at) => [
    { at, when: 'before' as const },
    { at, when: 'after' as const },
  ]).flat();

  test.each(CUTS)('leaves nothing that could be handed out twice, cut $when call $at', async ({ at, when }) => {
    const table = memoryTable();
    const former = await register(table);
    await pass(table, former, SERVICES);
    const cut = new Cut(at, when);
    const ended = await importRanges(cutTable(table, cut), CLUSTER, fileOf(), OPTIONS).catch(() => 'cut');
    expect(cut.happened).toBe(ended === 'cut');

    // Where the bits are in, nobody allocates before a pass.
    const clusters = [former, await registered(table)];
    for (const [key, allocationsOf] of [
      [PRIMARY, addressesOf],
      [NODE_PORTS, portsOf],
    ] as const) {
      if (!(await bits(table, key)).includes(7)) continue;
      const states = await Promise.all(clusters.map((cluster) => stateOf(allocationsOf(table, cluster))));
      expect(states).toEqual(['older', 'closed']);
    }

    // A pass opens, whether the import is made again before it or after it.
    await pass(table, await registered(table), SERVICES);
    expect(await stateOf(addressesOf(table, await registered(table)))).toBe('open');
    expect(await stateOf(portsOf(table, await registered(table)))).toBe('open');
    await imported(table);
    const last = await registered(table);
    await pass(table, last, SERVICES);
    expect(await bits(table, PRIMARY)).toEqual(expect.arrayContaining([5, 6, 7, 8]));
    expect(await bits(table, NODE_PORTS)).toEqual(expect.arrayContaining([5, 6, 7]));
    const left = [...(await allOf(addressesOf(table, last))), ...(await allOf(portsOf(table, last)))];
    for (const taken of [...TAKEN.addresses, ...TAKEN.ports]) expect(left).not.toContain(taken);
  });

  test('has been cut at every call that it makes', async () => {
    const table = memoryTable();
    await pass(table, await register(table), SERVICES);
    const cut = new Cut(CUTS.length / 2, 'before');
    await importRanges(cutTable(table, cut), CLUSTER, fileOf(), OPTIONS);
    expect(cut.happened).toBe(false);
  });
});
