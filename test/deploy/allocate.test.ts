import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { type Emulator, startEmulator } from '../support/emulator.ts';
import { REGION } from '../support/emulator-aws.ts';
import { sumOf } from '../support/emulator-logs.ts';
import { testFiftyCallers } from '../support/fifty-callers.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';
import { messages, startWorld, type World } from './world.ts';

jest.setTimeout(180_000);

const TABLE = 'kube-bootstrap-controller';

describe('Over the emulator of AWS', () => {
  let emulator: Emulator;
  let client: DynamoDBClient;

  beforeAll(async () => {
    emulator = await startEmulator();
    client = testDynamoClient(emulator.aws.endpoint, { region: REGION });
    await createTable(client, TABLE, { pollMs: 20 });
  });

  afterAll(async () => {
    client?.destroy();
    await emulator?.stop();
  });

  testFiftyCallers(async () => {
    const deadline = new AbortController().signal;
    return dynamoDbTable({ client, tableName: TABLE, deadline, nowMs: Date.now, newWriteId: randomUUID });
  });
});

describe('Deployed', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
  });

  afterAll(async () => {
    await world?.stop();
  });

  test('the function allocates, releases and looks up, under just its role', async () => {
    const deployed = await world.deploy();
    const { taken, repair } = await anAllocateWorld({ table: world.table(), clock: { nowMs: Date.now() } });
    await repair(Date.now());
    const items = [
      { range: 'serviceips', value: '10.0.0.1' },
      { range: 'servicenodeports', value: 30_001 },
    ];
    const ask = (requestId: string, operation: string, cluster = CLUSTER) =>
      deployed.run('allocate', { requestId, cluster, operation, items });

    const { answer, logs, metrics } = await ask('r1', 'allocate');
    expect(answer).toMatchObject({ outcome: 'done', items: [{ value: '10.0.0.1' }, { value: 30_001 }] });
    expect(await taken()).toEqual({ '10.0.0.1': 'r1', '30001': 'r1' });
    expect(messages(logs)).toEqual(['allocate: done']);
    expect(sumOf(metrics, 'allocations')).toBe(2);
    expect((await ask('r1', 'allocate')).answer).toEqual({ ...(answer as object), replayed: true });
    expect((await ask('r2', 'lookUp')).answer).toMatchObject({ items: [{ outcome: 'taken' }, { outcome: 'taken' }] });
    expect((await ask('r3', 'release')).answer).toMatchObject({ outcome: 'done' });
    expect(await taken()).toEqual({});
    expect((await ask('r4', 'allocate', 'dem')).answer).toMatchObject({
      error: { message: 'cluster dem is not registered; did you mean demo?' },
    });
    expect(world.callsNotGranted()).toEqual([]);
  });
});
