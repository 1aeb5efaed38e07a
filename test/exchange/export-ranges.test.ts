import { describe, expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterRangesToJson } from '../../lib/exchange/cluster-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import {
  asRangeAllocation,
  type Exported,
  type ExportOptions,
  exportRanges,
} from '../../lib/exchange/export-ranges.ts';
import { importRanges } from '../../lib/exchange/import-ranges.ts';
import { rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { type RunRecord, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { memoryTable } from '../support/memory-table.ts';
import { aRunRecord } from '../support/run-records.ts';
import { read, refusal } from './files.ts';
import { addressesOf, CLUSTER, fileOf, NOW_MS, pass, register, registered, SPEC, stateOf } from './import-world.ts';

const { primary: PRIMARY, nodePorts: NODE_PORTS } = RANGE_KEYS;
const INTERVAL_MS = 180_000;
const SERVICES = [withAddresses('a', '10.0.0.3'), withNodePorts('b', 30004)];

/** What dispatch writes after a pass that succeeded. */
async function record(table: KeyValueTable, loop: Loop, fields: Partial<RunRecord> = {}): Promise<void> {
  const previous = await readRunRecord(table, CLUSTER, loop);
  await writeRunRecord(table, CLUSTER, loop, aRunRecord(NOW_MS, fields), previous?.item);
}

/** A cluster after a pass of both loops a minute ago. */
async function passed(table: KeyValueTable, spec = SPEC): Promise<void> {
  await pass(table, await register(table, spec), SERVICES);
  for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) {
    await record(table, loop, { lastSuccessAtMs: NOW_MS - 60_000 });
  }
}

async function exported(table: KeyValueTable, options: Partial<ExportOptions> = {}): Promise<Exported> {
  const result = await exportRanges(table, CLUSTER, { nowMs: NOW_MS, ...options });
  if (result instanceof ExchangeError) throw result;
  return result;
}

describe('An export', () => {
  test('has all ranges of the cluster and their age, and is the same after a round trip', async () => {
    const table = memoryTable();
    await passed(table);
    const { clusterRanges, agesMs, warnings } = await exported(table);
    expect(clusterRanges).toEqual({
      cluster: CLUSTER,
      exportedAtMs: NOW_MS,
      generation: 1,
      ranges: [
        {
          key: PRIMARY,
          range: '10.0.0.0/28',
          allocator: 'table',
          data: fromBits([2]),
          holds: [],
          lastPassAtMs: NOW_MS - 60_000,
        },
        {
          key: NODE_PORTS,
          range: '30000-30015',
          allocator: 'table',
          data: fromBits([4]),
          holds: [],
          lastPassAtMs: NOW_MS - 60_000,
        },
      ],
    });
    expect(agesMs).toEqual([60_000, 60_000]);
    expect(warnings).toEqual([]);
    expect(read(clusterRangesToJson(clusterRanges))).toMatchObject({ clusterRanges });
  });

  test('of one range does not read the others', async () => {
    const table = memoryTable();
    await passed(table);
    await record(table, 'cluster-ip-repair', { lastSuccessAtMs: 0 });
    const { clusterRanges } = await exported(table, { keys: [NODE_PORTS] });
    expect(clusterRanges.ranges.map(({ key }) => key)).toEqual([NODE_PORTS]);
  });

  test('carries holds, but for those that are over', async () => {
    const table = memoryTable();
    await passed(table);
    const addresses = addressesOf(table, await registered(table));
    const terms = { owner: 'ci', takenUpBy: 'any' as const };
    await addresses.allocate([{ value: '10.0.0.8' }], { hold: { ...terms, untilMs: NOW_MS } });
    await addresses.allocate([{ value: '10.0.0.9' }], { hold: terms });
    const { clusterRanges } = await exported(table, { keys: [PRIMARY] });
    expect(clusterRanges.ranges).toMatchObject([
      { data: fromBits([2, 7, 8]), holds: [{ items: ['10.0.0.9'], owner: 'ci' }] },
    ]);
  });

  test('to a cluster of the original warns of what is lost', async () => {
    const table = memoryTable();
    await passed(table);
    const [addresses, ports] = (await exported(table)).clusterRanges.ranges;
    if (addresses === undefined || ports === undefined) throw new Error('expected two ranges');
    expect(asRangeAllocation(ports).warnings).toEqual([]);
    const held = { ...addresses, holds: [{ items: ['10.0.0.3'], owner: 'ci', takenUpBy: 'any' as const }] };
    const { allocation, warnings } = asRangeAllocation(held);
    expect(warnings).toEqual([
      expect.stringContaining('1 items of ranges/serviceips are held'),
      expect.stringContaining('do not read /registry/ranges/serviceips'),
    ]);
    expect(read(rangeAllocationToStorage(allocation))).toMatchObject({
      allocation: { range: '10.0.0.0/28', data: fromBits([2]) },
    });
  });

  test('imported into another cluster makes that one have the same taken', async () => {
    const [from, to] = [memoryTable(), memoryTable()];
    await passed(from);
    await register(to);
    const file = read(clusterRangesToJson((await exported(from)).clusterRanges));
    await importRanges(to, CLUSTER, file, { ...AT_ONCE, nowMs: NOW_MS });
    const cluster = await registered(to);
    expect(await stateOf(addressesOf(to, cluster))).toBe('closed');
    await pass(to, cluster, SERVICES);
    for (const key of [PRIMARY, NODE_PORTS]) {
      const [here, there] = await Promise.all([from, to].map((table) => readRange(table, CLUSTER, key)));
      expect(there?.stored.data).toEqual(here?.stored.data);
    }
  });
});

describe('An export is refused', () => {
  const cases: {
    readonly what: string;
    readonly arrange: (table: KeyValueTable) => Promise<unknown>;
    readonly expected: unknown;
  }[] = [
    {
      what: 'of a cluster that API servers allocate for',
      arrange: (table) => register(table, { ...SPEC, allocator: 'apiserver' }),
      expected: refusal('NoRecord', 'no record of allocations'),
    },
    {
      what: 'when its loop has never had a pass',
      arrange: (table) => register(table),
      expected: refusal('NotCurrent', 'no enforcing pass of cluster-ip-repair'),
    },
    {
      what: 'when its last pass is over two intervals old',
      arrange: (table) => record(table, 'cluster-ip-repair', { lastSuccessAtMs: NOW_MS - 2 * INTERVAL_MS - 1 }),
      expected: refusal('NotCurrent', '360 s old'),
    },
    {
      what: 'when none of its passes succeeded',
      arrange: (table) => withoutSuccess(table),
      expected: refusal('NotCurrent', 'has saved it'),
    },
    {
      what: 'when passes only observe',
      arrange: (table) => record(table, 'node-port-repair', { observed: true, mode: 'observe' }),
      expected: refusal('NotCurrent', 'node-port-repair', 'only observe'),
    },
    {
      what: 'when the spec has another range by now',
      arrange: (table) => register(table, { ...SPEC, serviceNodePortRange: '31000-31015' }),
      expected: refusal('NotCurrent', 'since the ranges of the spec were changed'),
    },
    {
      what: 'between an import and the pass after it',
      arrange: (table) => importRanges(table, CLUSTER, fileOf(), { ...AT_ONCE, nowMs: NOW_MS }),
      expected: refusal('NotCurrent', 'imported into'),
    },
  ];

  async function withoutSuccess(table: KeyValueTable): Promise<void> {
    const read = await readRunRecord(table, CLUSTER, 'cluster-ip-repair');
    if (read === undefined) throw new Error('expected a record');
    const { lastSuccessAtMs: _, ...failed } = read.record;
    await writeRunRecord(table, CLUSTER, 'cluster-ip-repair', { ...failed, outcome: 'failed' }, read.item);
  }

  test.each(cases)('$what, unless it is forced', async ({ what, arrange, expected }) => {
    const table = memoryTable();
    if (!what.includes('never')) await passed(table);
    await arrange(table);
    expect(await exportRanges(table, CLUSTER, { nowMs: NOW_MS })).toEqual(expected);
    const { warnings } = await exported(table, { force: true });
    const { message } = (await exportRanges(table, CLUSTER, { nowMs: NOW_MS })) as ExchangeError;
    expect(warnings).toContain(message);
  });

  test('of a usage bitmap, and what is forced cannot be imported', async () => {
    const table = memoryTable();
    await pass(table, await register(table, { ...SPEC, allocator: 'apiserver' }), SERVICES);
    const { clusterRanges } = await exported(table, { force: true });
    expect(clusterRanges.ranges).toMatchObject([{ allocator: 'apiserver' }, { allocator: 'apiserver' }]);
    await register(table);
    const file = read(clusterRangesToJson(clusterRanges));
    expect(await importRanges(table, CLUSTER, file, { ...AT_ONCE, nowMs: NOW_MS })).toEqual(refusal('NoRecord'));
  });

  test('of what is not there, forced or not', async () => {
    const table = memoryTable();
    expect(await exportRanges(table, CLUSTER, { nowMs: NOW_MS, force: true })).toEqual(refusal('NotRegistered'));
    await register(table);
    const keys = [RANGE_KEYS.secondary];
    expect(await exportRanges(table, CLUSTER, { nowMs: NOW_MS, keys, force: true })).toEqual(refusal('OtherRange'));
    expect((await exported(table, { force: true })).clusterRanges.ranges).toEqual([]);
  });

  test('not while the record of a loop that runs every quarter of a minute may be a minute old', async () => {
    const table = memoryTable();
    await passed(table, { ...SPEC, intervalSeconds: { ...aClusterSpec().intervalSeconds, 'cluster-ip-repair': 15 } });
    await record(table, 'cluster-ip-repair', { lastSuccessAtMs: NOW_MS - 75_000 });
    expect((await exported(table)).agesMs).toEqual([75_000, 60_000]);
    await record(table, 'cluster-ip-repair', { lastSuccessAtMs: NOW_MS - 75_001 });
    expect(await exportRanges(table, CLUSTER, { nowMs: NOW_MS })).toEqual(refusal('NotCurrent', '75 s old'));
  });

  test('not after exactly two intervals, nor by a clock that is behind', async () => {
    const table = memoryTable();
    await passed(table);
    await record(table, 'cluster-ip-repair', { lastSuccessAtMs: NOW_MS - 2 * INTERVAL_MS });
    await record(table, 'node-port-repair', { lastSuccessAtMs: NOW_MS + 5000 });
    expect((await exported(table)).agesMs).toEqual([2 * INTERVAL_MS, 0]);
  });
});
