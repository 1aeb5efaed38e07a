import { CreateTableCommand, type DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import { createDynamoClient } from '../lib/table/dynamodb/dynamodb-table.ts';

/** Returns a client of a table server, such as `http://127.0.0.1:<port>`. It reads no credentials from the environment. */
export function tableServerClient(endpoint: string, key: string): DynamoDBClient {
  return createDynamoClient({
    endpoint,
    region: 'local',
    credentials: { accessKeyId: key, secretAccessKey: 'local' },
    // The timeouts are long, because the table may be in this process, which may be busy.
    connectionTimeoutMs: 5_000,
    requestTimeoutMs: 5_000,
  });
}

/** Creates the table of a local run or a test if it does not exist, and waits until it is active. */
export async function createTable(client: DynamoDBClient, name: string): Promise<void> {
  const command = new CreateTableCommand({
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [
      { AttributeName: 'cluster', AttributeType: 'S' },
      { AttributeName: 'key', AttributeType: 'S' },
    ],
    KeySchema: [
      { AttributeName: 'cluster', KeyType: 'HASH' },
      { AttributeName: 'key', KeyType: 'RANGE' },
    ],
  });
  await client.send(command).catch((error: Error) => {
    if (error.name !== 'ResourceInUseException') throw error;
  });
  await waitUntilTableExists({ client, minDelay: 0.005, maxDelay: 0.01, maxWaitTime: 5 }, { TableName: name });
}
