import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import { type Emulator, startEmulator } from '../support/emulator.ts';
import { REGION } from '../support/emulator-aws.ts';
import { testFiftyCallers } from '../support/fifty-callers.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

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
