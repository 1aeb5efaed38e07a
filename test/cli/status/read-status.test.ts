import { expect, test } from '@jest/globals';
import { readStatus, type StatusRequest } from '../../../cli/status/read-status.ts';
import { RANGE_KEYS } from '../../../lib/spec/spec-ranges.ts';
import { registerCluster } from '../../../lib/table/cluster-registration.ts';
import { type KeyValueTable, TableError, type TableValue } from '../../../lib/table/key-value-table.ts';
import { saveRange } from '../../../lib/table/ranges.ts';
import { writeRunRecord } from '../../../lib/table/run-records.ts';
import { won } from '../../contract/key-value-table.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aStoredRange } from '../../support/a-fleet-status.ts';
import { memoryTable } from '../../support/memory-table.ts';
import { putLease } from '../../support/put-lease.ts';
import { aRunRecord } from '../../support/run-records.ts';

/** The time at which the status is read. The tables of these tests write everything at time 0. */
const NOW_MS = 5_000;

const readFleet = (table: KeyValueTable, request: Partial<StatusRequest> = {}) =>
  readStatus(table, { nowMs: NOW_MS, tableName: 't', details: 'full', ...request });
const readOne = async (table: KeyValueTable) => (await readFleet(table, { cluster: 'demo' })).clusters[0];

/** Writes a cluster with a lease, two ranges and the record of one pass, and the answer to a request. */
async function fill(table: KeyValueTable, name = 'demo'): Promise<void> {
  await registerCluster(table, aClusterSpec({ name }));
  await putLease(table, name, { address: '10.9.8.7', expiresAtMs: 15_000, lastProbe: 'answered 200' });
  const primary = aStoredRange([0, 1], { generation: 1 });
  won(await saveRange(table, name, RANGE_KEYS.primary, primary, undefined));
  const ports = aStoredRange([0], { range: '30000-32767', generation: 1 });
  won(await saveRange(table, name, RANGE_KEYS.nodePorts, ports, undefined));
  const record = aRunRecord(0, { counts: { allocated: 2, capacity: 254, free: 252 } });
  won(await writeRunRecord(table, name, 'cluster-ip-repair', record, undefined));
  await putAnything(table, name, 'requests/1', { answer: 'x' });
}

async function putAnything(table: KeyValueTable, cluster: string, key: string, value: TableValue): Promise<void> {
  const previous = await table.get(cluster, key);
  won(await table.put({ cluster, key, value, schema: 1 }, previous));
}

/** Returns the table. It calls `see` before each read. */
function watched(table: KeyValueTable, see: (asked: string) => unknown): KeyValueTable {
  return {
    ...table,
    get: async (cluster, key) => {
      await see(`${cluster}/${key}`);
      return table.get(cluster, key);
    },
    list: async (cluster, prefix) => {
      await see(`${cluster}/${prefix}*`);
      return table.list(cluster, prefix);
    },
  };
}

test('the status of a cluster reports each table item that does not parse, and shows all other items', async () => {
  const table = memoryTable();
  await fill(table);
  await putAnything(table, 'demo', 'masterleases', 'text');
  await putAnything(table, 'demo', 'runs/node-port-repair', { startedAtMs: 'noon' });
  await putAnything(table, 'demo', RANGE_KEYS.nodePorts, { range: 1 });
  await putAnything(table, 'demo', 'runs/of-a-later-version', 'text');
  const status = await readOne(table);
  expect(status?.unreadable).toEqual([
    expect.stringContaining('demo/masterleases does not parse'),
    expect.stringContaining('demo/runs/node-port-repair does not parse'),
    expect.stringContaining('demo/ranges/servicenodeports does not parse'),
  ]);
  expect(status).toMatchObject({ health: 'unhealthy', apiServers: [{ state: 'neverSeen' }], ranges: [{ used: 2 }] });
  expect(status?.loops.map(({ state }) => state)).toEqual(['neverRan', 'neverRan', 'good', 'unknown']);
});

test('the status of a cluster cannot be read if its spec does not parse', async () => {
  const table = memoryTable();
  await putAnything(table, '#clusters', 'demo', { generation: 1, spec: 'text' });
  await expect(readOne(table)).rejects.toMatchObject({ code: 'Corrupt' });
});

test('the status lists the clusters that need attention first, then the other clusters by name, and separately the registrations that cannot be read', async () => {
  const table = memoryTable();
  for (const name of ['c', 'a', 'b']) await fill(table, name);
  const record = aRunRecord(0, { findings: [{ type: 'duplicate', message: 'taken twice' }] });
  won(await writeRunRecord(table, 'c', 'node-port-repair', record, undefined));
  await putAnything(table, '#clusters', 'd', { generation: 1, spec: 'text' });
  const fleet = await readFleet(table, { tableName: 'a-table' });
  expect(fleet).toMatchObject({ atMs: NOW_MS, table: 'a-table' });
  const order = ['c unhealthy', 'a unknown', 'b unknown'];
  expect(fleet.clusters.map(({ name, health }) => `${name} ${health}`)).toEqual(order);
  expect(fleet.unreadable).toEqual([{ name: 'd', message: expect.stringContaining('#clusters/d') }]);
  expect(fleet).not.toHaveProperty('pausedAll');
});

test('the status of a thousand clusters is read with at most 48 simultaneous reads', async () => {
  const table = memoryTable();
  const names = Array.from({ length: 1_000 }, (_, n) => `c${String(n).padStart(3, '0')}`);
  for (const name of names) await registerCluster(table, aClusterSpec({ name }));
  let running = 0;
  let most = 0;
  const counting = watched(table, async () => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running -= 1;
  });
  const fleet = await readFleet(counting);
  expect(fleet.clusters.map(({ name }) => name)).toEqual(names);
  expect(most).toBeLessThanOrEqual(3 * 16);
});

test('if one table item prevents the read of a list, the status reads each known key alone and skips only that item', async () => {
  const table = memoryTable();
  await fill(table);
  const corrupt = watched(table, (what) => {
    if (what !== 'demo/ranges/*' && what !== `demo/${RANGE_KEYS.nodePorts}`) return;
    throw new TableError('Corrupt', 'Item demo/ranges/servicenodeports has no readable attribute "value".');
  });
  const status = await readOne(corrupt);
  expect(status?.unreadable).toHaveLength(1);
  expect(status?.ranges).toMatchObject([{ key: RANGE_KEYS.primary, used: 2, savedAtMs: 0 }]);
});

test('the read of the status fails and stops at the first failed call to the table', async () => {
  const table = memoryTable();
  for (let n = 0; n < 40; n++) await fill(table, `c${n}`);
  const read: string[] = [];
  const failing = watched(table, (what) => {
    read.push(what);
    if (what === 'c0/runs/*') throw new TableError('Throttled', 'The table is busy.');
  });
  await expect(readFleet(failing)).rejects.toMatchObject({ code: 'Throttled' });
  expect(read.filter((what) => what.startsWith('c9/'))).toEqual([]);
});
