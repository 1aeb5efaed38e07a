import { setTimeout as sleep } from 'node:timers/promises';
import { CreateTableCommand, DescribeTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { regionOf, type TableAction, tableErrorOf } from './dynamodb-errors.ts';
import { TableError } from './errors.ts';

export interface CreateTableOptions {
  /** How often to ask whether the table is there. Default 250 ms. */
  readonly pollMs?: number;
  /** How many times at most. Default 120. */
  readonly polls?: number;
}

/**
 * Makes the table, if there is none of that name, and waits until it serves. For tests and for a table on this machine:
 * a deployed one is made by its stack, which also turns on sweeping by the attribute `ttl`.
 */
export async function createTable(
  client: DynamoDBClient,
  name: string,
  options: CreateTableOptions = {},
): Promise<void> {
  const { pollMs = 250, polls = 120 } = options;
  await orTableError(client, name, 'dynamodb:CreateTable', () => createIfAbsent(client, name));
  for (let poll = 0; poll < polls; poll++) {
    if (await orTableError(client, name, 'dynamodb:DescribeTable', () => isActive(client, name))) return;
    await sleep(pollMs);
  }
  throw new TableError(
    'Unavailable',
    `Table "${name}" was made but does not serve after ${(pollMs * polls) / 1000} s: look at its status, then try again.`,
  );
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

async function isActive(client: DynamoDBClient, name: string): Promise<boolean> {
  const { Table } = await client.send(new DescribeTableCommand({ TableName: name }));
  return Table?.TableStatus === 'ACTIVE';
}

async function orTableError<T>(
  client: DynamoDBClient,
  tableName: string,
  action: TableAction,
  request: () => Promise<T>,
): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw tableErrorOf(error, { action, tableName, region: await regionOf(client) });
  }
}
