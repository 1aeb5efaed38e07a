import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { testFiftyCallers } from '../support/fifty-callers.ts';
import { countedWriteIds } from '../support/memory-table.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

const TABLE = 'kube-bootstrap-controller';

describe('Over a DynamoDB in this process', () => {
  let server: TableServer;
  let client: DynamoDBClient;

  beforeAll(async () => {
    server = await startTableServer({ key: 'test' });
    client = testDynamoClient(server.endpoint);
    await createTable(client, TABLE, { pollMs: 1 });
  });

  afterAll(async () => {
    client.destroy();
    await server.close();
  });

  testFiftyCallers(async () => {
    const deadline = new AbortController().signal;
    return dynamoDbTable({ client, tableName: TABLE, deadline, nowMs: Date.now, newWriteId: countedWriteIds() });
  });
});
