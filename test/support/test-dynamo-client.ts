import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient, type DynamoClientOptions } from '../../lib/table/dynamodb-table.ts';

/** A client as in production, but for its waits between attempts, and for timeouts that no busy machine reaches. */
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
