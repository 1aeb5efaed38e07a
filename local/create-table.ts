import { setTimeout as sleep } from 'node:timers/promises';
import { CreateTableCommand, DescribeTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';

const POLL_MS = 5;
const POLLS = 500;

/**
 * Creates the table if it does not exist, and waits until it is active. For tests and local tables: a deployed one is
 * created by its stack, which also enables TTL by the attribute `ttl`.
 */
export async function createTable(client: DynamoDBClient, name: string): Promise<void> {
  await createIfAbsent(client, name);
  for (let poll = 0; poll < POLLS; poll++) {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: name }));
    if (Table?.TableStatus === 'ACTIVE') return;
    await sleep(POLL_MS);
  }
  throw new Error(`Table "${name}" was created but is not active after ${(POLL_MS * POLLS) / 1000} s.`);
}

async function createIfAbsent(client: DynamoDBClient, name: string): Promise<void> {
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
  try {
    await client.send(command);
  } catch (error) {
    const exists = error instanceof Error && error.name === 'ResourceInUseException';
    if (!exists) throw error;
  }
}
