import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';
import { createDynamoClient, type DynamoClientOptions } from '../../lib/table/dynamodb-client.ts';

/** An embedded DynamoDB in this process. */
export interface Dynalite {
  readonly endpoint: string;
  /** Ends it, and every connection to it. */
  close(): Promise<void>;
}

/** Starts on a free port of the loopback. Tables are kept in `path` when it is given, else in memory. */
export async function startDynalite({ path }: { readonly path?: string } = {}): Promise<Dynalite> {
  const server = dynalite({ ...(path !== undefined && { path }), createTableMs: 0, deleteTableMs: 0 });
  // It answers a request that its sender gives up by an exception that nobody could catch.
  server.on('request', (request) => {
    request.removeAllListeners('error');
    request.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

/** A client as in production, but for its waits between attempts. */
export function testDynamoClient(endpoint: string, options: DynamoClientOptions = {}): DynamoDBClient {
  return createDynamoClient({
    endpoint,
    region: 'eu-test-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxRetryDelayMs: 1,
    requestTimeoutMs: 10_000,
    connectionTimeoutMs: 10_000,
    ...options,
  });
}
