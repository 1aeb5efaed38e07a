import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient } from '../lib/table/dynamodb/dynamodb-table.ts';

export interface TableAccess {
  /** The URL of the table server: `http://127.0.0.1:<port>`. */
  readonly endpoint: string;
  readonly key: string;
}

/** Returns a client that does not read credentials from the environment. */
export function tableServerClient({ endpoint, key }: TableAccess): DynamoDBClient {
  return createDynamoClient({
    endpoint,
    region: 'local',
    credentials: { accessKeyId: key, secretAccessKey: 'local' },
    // The timeouts are long, because the table may be in this process, which may be busy.
    connectionTimeoutMs: 5_000,
    requestTimeoutMs: 5_000,
  });
}
