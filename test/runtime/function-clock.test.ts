import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from '@jest/globals';
import { fromBits, hasBit } from '../../lib/allocator/snapshot-bytes.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { environmentFrom } from '../../lib/runtime/cluster-environment.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { createTable } from '../../local/create-table.ts';
import { startTableServer } from '../../local/table-server.ts';
import { listing, storedRange } from '../repair/repair-cluster.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { emulatedAws } from '../support/emulator-project.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { found } from '../support/found.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';
import { type RecordingTelemetry, recordingTelemetry } from '../support/recording-telemetry.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

const MINUTE_MS = 60_000;
const TABLE_NAME = 'clusters';
const RANGE = '10.0.0.0/24';
const BIT = 8;

let table: KeyValueTable;
let telemetry: RecordingTelemetry;

/** Returns the time of the table. The clock of the function is 16 minutes ahead. */
const tableNowMs = () => Date.now() - 16 * MINUTE_MS;

beforeEach(async () => {
  const server = await startTableServer({ key: 'test' });
  afterThisTest(server.close);
  const proxy = await startFaultProxy(server.endpoint);
  afterThisTest(proxy.close);
  proxy.clock.nowMs = tableNowMs;
  const client = testDynamoClient(server.endpoint);
  afterThisTest(() => client.destroy());
  await createTable(client, TABLE_NAME);
  const deadline = new AbortController().signal;
  table = dynamoDbTable({ client, tableName: TABLE_NAME, deadline, nowMs: tableNowMs, newWriteId: randomUUID });
  await registerCluster(table, aClusterSpec({ mode: 'enforce', allocator: 'table', serviceClusterIPRanges: [RANGE] }));
  await claimCluster(table, 'demo', 'prod');
  telemetry = recordingTelemetry();
  const variables = process.env;
  afterThisTest(() => {
    process.env = variables;
  });
  process.env = { ...variables, ...emulatedAws(proxy.endpoint, 'test') };
});

/** Runs the first invocation of a process. */
function invoke(event: object): Promise<unknown> {
  const environment: Environment = {
    ...environmentFrom({ TABLE_NAME, REPORTING_INSTANCE: 'test', STACK: 'prod' }),
    telemetry: () => telemetry,
    connect: async () => ({
      kubernetes: listing(() => []),
      probe: async () => ({ kind: 'silence', message: 'nothing is probed' }),
      controlPlane: CONTROL_PLANE,
    }),
  };
  return loopHandler(clusterIpRepair)(event, { environment, getRemainingTimeInMillis: () => MINUTE_MS });
}

test('a function whose clock is 16 minutes ahead of the table does not free an address whose hold ends in ten minutes', async () => {
  const hold = {
    items: ['10.0.0.9'],
    owner: 'shop',
    takenUpBy: 'any',
    untilMs: tableNowMs() + 10 * MINUTE_MS,
  } as const;
  const range = storedRange({ range: RANGE, data: fromBits([BIT]), holds: [hold] });
  await saveRange(table, 'demo', RANGE_KEYS.primary, range, undefined);
  expect(await invoke({ force: true })).toMatchObject({ passes: 1, failed: 0 });
  const { holds, data } = found(await readRange(table, 'demo', RANGE_KEYS.primary)).stored;
  expect([holds, hasBit(data, BIT)]).toEqual([[hold], true]);
});

test('a function whose clock is 16 minutes ahead of the table runs the passes of a punctual scheduled event, and logs the difference', async () => {
  const event = { 'detail-type': 'Scheduled Event', time: new Date(tableNowMs()).toISOString() };
  expect(await invoke(event)).toMatchObject({ passes: 1, failed: 0 });
  expect(telemetry.lines.map(({ message }) => message)).toContain("the clock differs from the table's");
});
