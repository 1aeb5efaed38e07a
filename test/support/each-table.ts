import { randomUUID } from 'node:crypto';
import { describe } from '@jest/globals';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { createTable } from '../../local/create-table.ts';
import { memoryTable } from './memory-table.ts';
import { runningTableServer } from './running-table-server.ts';

const NAME = 'kube-bootstrap-controller';

/** Defines the same tests twice: over a new in-memory table for each `open`, and over DynamoDB tables of dynalite. */
export function describeInEachTable(name: string, define: (open: () => Promise<KeyValueTable>) => void): void {
  describe(`${name}, in memory`, () => {
    define(async () => memoryTable());
  });

  describe(`${name}, in DynamoDB`, () => {
    const server = runningTableServer();
    let tables = 0;

    define(async () => {
      const { client } = server;
      tables += 1;
      const tableName = `${NAME}-${tables}`;
      await createTable(client, tableName);
      const deadline = new AbortController().signal;
      return dynamoDbTable({ client, tableName, deadline, nowMs: () => 0, newWriteId: randomUUID });
    });
  });
}

/** Options of updates that do not wait between attempts. */
export const AT_ONCE = { wait: () => Promise.resolve() };
