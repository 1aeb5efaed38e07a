import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
} from '@aws-sdk/client-dynamodb';
import { StandardRetryStrategy } from '@smithy/core/retry';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { regionOf, type TableAction, tableErrorOf } from './dynamodb-errors.ts';
import { TableError } from './errors.ts';

export interface DynamoClientOptions {
  /** Default: that of the AWS SDK. */
  readonly region?: string;
  /** A profile of the AWS CLI. */
  readonly profile?: string;
  readonly endpoint?: string;
  readonly credentials?: NonNullable<DynamoDBClientConfig['credentials']>;
  /** Attempts of one call, including the first. Default: 3. */
  readonly maxAttempts?: number;
  /** The longest wait between two attempts, throttled or not. Default: 1 s. */
  readonly maxRetryDelayMs?: number;
  /** Default: 500 ms. */
  readonly connectionTimeoutMs?: number;
  /** The longest wait for a reply, and the longest silence within one. Default: 1.5 s. */
  readonly requestTimeoutMs?: number;
}

/**
 * Creates the client of a process. With the defaults a call ends within about 7 s, which fits a pass of ten; the
 * deadline of the pass may end it sooner.
 */
export function createDynamoClient(options: DynamoClientOptions = {}): DynamoDBClient {
  const { region, profile, endpoint, credentials } = options;
  const { maxAttempts = 3, maxRetryDelayMs = 1000, connectionTimeoutMs = 500, requestTimeoutMs = 1500 } = options;
  return new DynamoDBClient({
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
    logger: QUIET,
    maxAttempts,
    retryStrategy: new StandardRetryStrategy({ maxAttempts, backoff: cappedBackoff(maxRetryDelayMs) }),
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without this the handler only warns and waits longer.
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
    }),
  });
}

/** Without `info`, which the SDK calls for every request after copying each item. */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig['logger']>;

/**
 * Returns the SDK's exponential wait with full jitter, capped at `maxMs`: after throttling alone it would be seconds.
 */
function cappedBackoff(maxMs: number) {
  let baseMs = 50;
  return {
    setDelayBase: (delayMs: number): void => {
      baseMs = delayMs;
    },
    computeNextBackoffDelay: (attempt: number): number =>
      Math.floor(Math.random() * Math.min(baseMs * 2 ** attempt, maxMs)),
  };
}

/** How many times to check whether the table exists. */
const POLLS = 120;

/**
 * Creates the table if it does not exist, and waits until it is active. For tests and local tables: a deployed one is
 * created by its stack, which also enables TTL by the attribute `ttl`.
 */
export async function createTable(
  client: DynamoDBClient,
  name: string,
  { pollMs }: { readonly pollMs: number },
): Promise<void> {
  await orTableError(client, name, 'dynamodb:CreateTable', () => createIfAbsent(client, name));
  for (let poll = 0; poll < POLLS; poll++) {
    if (await orTableError(client, name, 'dynamodb:DescribeTable', () => isActive(client, name))) return;
    await sleep(pollMs);
  }
  throw new TableError(
    'Unavailable',
    `Table "${name}" was created but is not active after ${(pollMs * POLLS) / 1000} s: check its status, then try again.`,
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
