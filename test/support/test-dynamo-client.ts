import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient, type DynamoClientOptions } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { startTableServer } from '../../local/table-server.ts';
import { running } from './running.ts';

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

/** Starts a table server with a client before the tests and stops both after them. */
export function runningTableServer() {
  return running(async () => {
    const server = await startTableServer({ key: 'test' });
    const client = testDynamoClient(server.endpoint);
    const close = async () => {
      client.destroy();
      await server.close();
    };
    return { ...server, client, close };
  });
}
