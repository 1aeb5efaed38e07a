import { CreateTableCommand, type DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';

/**
 * Creates the table if it does not exist, and waits until it is active. For tests and local tables. A stack creates its own
 * table, and also enables TTL by the attribute `ttl`.
 */
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
