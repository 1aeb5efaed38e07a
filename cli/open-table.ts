import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoClient } from '../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { findRunning } from '../local/running.ts';
import { usageError } from './errors.ts';

/** Where the table is. Without any of these: that of the `kbctl run` in this folder. */
export interface TableOptions {
  /** In AWS. */
  readonly table?: string;
  readonly profile?: string;
  readonly region?: string;
  /** The folder of a local run. */
  readonly data?: string;
}

/** A table, and what else is known of where it is. */
export interface OpenTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** For people: `table kbc-prod in eu-central-1`, `the local table of embedded`. */
  readonly title: string;
  /** Its calls are ended by the signal. */
  readonly tableUntil: (signal: AbortSignal) => KeyValueTable;
  close(): Promise<void>;
}

export async function openTable(options: TableOptions): Promise<OpenTable> {
  if (options.table !== undefined) return openInAws(options.table, options);
  if (options.profile !== undefined || options.region !== undefined) {
    throw usageError('--profile and --region go with --table NAME: which table in AWS?');
  }
  const folder = options.data ?? (await onlyLocalFolder());
  // It carries a whole table server, which no command on AWS waits for.
  const { openLocalTable } = await import('../local/local-table.ts');
  const { client, tableName, close } = await openLocalTable({ folder });
  return opened(client, tableName, `the local table in ${folder}`, close);
}

async function openInAws(tableName: string, { profile, region, data }: TableOptions): Promise<OpenTable> {
  if (data !== undefined) throw usageError('--table names a table in AWS and --data a local one: give one of them.');
  const client = createDynamoClient({
    ...(profile !== undefined && { profile }),
    ...(region !== undefined && { region }),
    // A person waits longer than a pass, and from farther away.
    connectionTimeoutMs: 3_000,
    requestTimeoutMs: 5_000,
  });
  return opened(client, tableName, `table ${tableName}`, async () => client.destroy());
}

function opened(client: DynamoDBClient, tableName: string, title: string, close: () => Promise<void>): OpenTable {
  const tableUntil = (deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs: Date.now, newWriteId: randomUUID });
  return { client, tableName, title, tableUntil, close };
}

/** Which local table is meant where none is named: the one that is running, or the one that there is. */
async function onlyLocalFolder(): Promise<string> {
  const running = await findRunning();
  const [only, ...others] = running.map(({ folder }) => folder);
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) {
    throw usageError(`Several local runs are going on: name one with --data, of ${[only, ...others].join(', ')}.`);
  }
  throw usageError(
    'Which table? Name one in AWS with --table NAME, or a local one with --data .kbctl/CLUSTER, or start one with "kbctl run".',
  );
}
