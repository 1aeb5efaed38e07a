import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient, type DynamoClientOptions } from '../../lib/table/dynamodb/dynamodb-table.ts';

/** Returns a client as in production, but with short waits and with timeouts that a busy machine does not reach. */
export function testDynamoClient(endpoint: string, options: DynamoClientOptions = {}): DynamoDBClient {
  return createDynamoClient({
    endpoint,
    region: 'eu-test-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxRetryDelayMs: 1,
    requestTimeoutMs: 120_000,
    connectionTimeoutMs: 120_000,
    ...options,
  });
}
