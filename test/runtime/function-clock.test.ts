import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import type { Prober } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { environmentFrom } from '../../lib/runtime/cluster-environment.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { createTable } from '../../local/table-client.ts';
import { startTableServer } from '../../local/table-server.ts';
import { listing } from '../repair/services.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { emulatedAws } from '../support/emulator-project.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { CONTROL_PLANE } from '../support/memory-cluster.ts';
import { recordingTelemetry } from '../support/recording-telemetry.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

const MINUTE_MS = 60_000;
const TABLE_NAME = 'clusters';

test('a function whose clock is 16 minutes ahead of the table runs the passes of a punctual scheduled event, and logs the difference', async () => {
  const tableNowMs = () => Date.now() - 16 * MINUTE_MS;
  const server = await startTableServer({ key: 'test' });
  afterThisTest(server.close);
  const proxy = await startFaultProxy(server.endpoint);
  afterThisTest(proxy.close);
  proxy.clock.nowMs = tableNowMs;
  const client = testDynamoClient(server.endpoint);
  afterThisTest(() => client.destroy());
  await createTable(client, TABLE_NAME);
  const deadline = new AbortController().signal;
  const table = dynamoDbTable({ client, tableName: TABLE_NAME, deadline, nowMs: tableNowMs, newWriteId: randomUUID });
  await registerCluster(table, aClusterSpec({ mode: 'enforce', allocator: 'table' }));
  await claimCluster(table, 'demo', 'prod');
  const telemetry = recordingTelemetry();
  const variables = process.env;
  afterThisTest(() => {
    process.env = variables;
  });
  process.env = { ...variables, ...emulatedAws(proxy.endpoint, 'test') };
  const probe: Prober = async () => ({ kind: 'silence', message: 'nothing is probed' });
  const environment: Environment = {
    ...environmentFrom({ TABLE_NAME, REPORTING_INSTANCE: 'test', STACK: 'prod' }),
    telemetry: () => telemetry,
    connect: async () => ({ kubernetes: listing(() => []), probe, controlPlane: CONTROL_PLANE }),
  };
  const event = { 'detail-type': 'Scheduled Event', time: new Date(tableNowMs()).toISOString() };
  const context = { environment, getRemainingTimeInMillis: () => MINUTE_MS };
  expect(await loopHandler(clusterIpRepair)(event, context)).toMatchObject({ passes: 1, failed: 0 });
  expect(telemetry.lines.map(({ message }) => message)).toContain("the clock differs from the table's");
});
