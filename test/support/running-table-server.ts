import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll } from '@jest/globals';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { testDynamoClient } from './test-dynamo-client.ts';

/**
 * Starts a table server before the tests and stops it after them.
 * @returns an object that gets its fields before the tests
 */
export function runningTableServer(): TableServer & { readonly client: DynamoDBClient } {
  const running = {} as TableServer & { client: DynamoDBClient };
  beforeAll(async () => {
    const server = await startTableServer({ key: 'test' });
    Object.assign(running, server, { client: testDynamoClient(server.endpoint) });
  });
  afterAll(async () => {
    running.client?.destroy();
    await running.close?.();
  });
  return running;
}
