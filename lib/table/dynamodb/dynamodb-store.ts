import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Store } from '../key-value-table.ts';
import { dynamoDbTable } from './dynamodb-table.ts';
import { serverClock } from './server-clock.ts';

/** Opens a table in DynamoDB. @param nowMs the clock of this host */
export function dynamoDbStore(client: DynamoDBClient, tableName: string, nowMs: () => number): Store {
  const clock = serverClock(client, nowMs);
  const table = (deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs: clock.nowMs, newWriteId: randomUUID });
  return { table, clock };
}
