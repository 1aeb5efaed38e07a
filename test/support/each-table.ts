import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { createTable } from '../../local/create-table.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { countedWriteIds, memoryTable } from './memory-table.ts';
import { testDynamoClient } from './test-dynamo-client.ts';

const NAME = 'kube-bootstrap-controller';

/** Defines the same tests twice: over a new in-memory table for each `open`, and over DynamoDB tables of dynalite. */
export function describeInEachTable(name: string, define: (open: () => Promise<KeyValueTable>) => void): void {
  const own = { nowMs: () => 0, newWriteId: countedWriteIds() };

  describe(`${name}, in memory`, () => {
    define(async () => memoryTable(own));
  });

  describe(`${name}, in DynamoDB`, () => {
    let server: TableServer;
    let client: DynamoDBClient;
    let tables = 0;

    beforeAll(async () => {
      server = await startTableServer({ key: 'test' });
      client = testDynamoClient(server.endpoint);
    });

    afterAll(async () => {
      client.destroy();
      await server.close();
    });

    define(async () => {
      tables += 1;
      const tableName = `${NAME}-${tables}`;
      await createTable(client, tableName);
      return dynamoDbTable({ ...own, client, tableName, deadline: new AbortController().signal });
    });
  });
}

/** Options of updates that do not wait between attempts. */
export const AT_ONCE = { wait: () => Promise.resolve() };
