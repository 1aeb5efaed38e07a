import { randomUUID } from 'node:crypto';
import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { attemptsOf, type CallLimits, clientOptions } from '../../aws/sdk.ts';
import { defined } from '../../util/values.ts';
import type { Item, ItemKey, KeyValueTable, Store, TableError, WriteResult } from '../key-value-table.ts';
import { idOf, itemOf, provenResult } from '../stored-item.ts';
import { endpointOf, isRefusal, regionOf, type TableAction, tableErrorOf } from './dynamodb-errors.ts';
import { attributesOf, itemFrom, keyOf, listedItemFrom } from './dynamodb-items.ts';
import { serverClock } from './server-clock.ts';

export interface DynamoClientOptions extends Partial<CallLimits> {
  /** The AWS region. Default: the region of the AWS SDK. */
  readonly region?: string;
  /** The name of a profile in the configuration of the AWS CLI. */
  readonly profile?: string;
  readonly endpoint?: string;
  readonly credentials?: NonNullable<DynamoDBClientConfig['credentials']>;
}

const LIMITS: CallLimits = {
  maxAttempts: 3,
  maxRetryDelayMs: 1_000,
  connectionTimeoutMs: 500,
  requestTimeoutMs: 1_500,
};

/** Creates the client of a process. By default, a call ends within about 7 s. A pass of kubernetes-service has 9 s. */
export function createDynamoClient(options: DynamoClientOptions = {}): DynamoDBClient {
  return new DynamoDBClient({ ...options, logger: QUIET, ...clientOptions({ ...LIMITS, ...options }) });
}

/** A logger without `info`. If `info` existed, the SDK would copy each item of every request. */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig['logger']>;

export interface DynamoDbTableOptions {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly deadline: AbortSignal;
  readonly nowMs: () => number;
  readonly newWriteId: () => string;
}

const IS_ABSENT = { ConditionExpression: 'attribute_not_exists(writeId)' };

function isStill({ writeId }: Item) {
  return {
    ConditionExpression: 'writeId = :previous',
    ExpressionAttributeValues: { ':previous': { S: writeId } },
  };
}

/** Opens a table in DynamoDB. @param nowMs the clock of this host */
export function dynamoDbStore(client: DynamoDBClient, tableName: string, nowMs: () => number): Store {
  const clock = serverClock(client, nowMs);
  const table = (deadline: AbortSignal) =>
    dynamoDbTable({ client, tableName, deadline, nowMs: clock.nowMs, newWriteId: randomUUID });
  return { table, clock };
}

/** Returns the table in DynamoDB. All its calls end when `deadline` aborts. */
export function dynamoDbTable({ client, tableName, deadline, nowMs, newWriteId }: DynamoDbTableOptions): KeyValueTable {
  const bound = { abortSignal: deadline };

  const toTableError = async (error: unknown, action: TableAction): Promise<TableError> =>
    tableErrorOf(error, {
      action,
      tableName,
      deadline,
      region: await regionOf(client),
      endpoint: await endpointOf(client),
    });

  const call = async <T>(action: TableAction, request: () => Promise<T>): Promise<T> => {
    try {
      deadline.throwIfAborted();
      return await request();
    } catch (error) {
      throw await toTableError(error, action);
    }
  };

  const get = async (cluster: string, key: string): Promise<Item | undefined> => {
    const command = new GetItemCommand({ TableName: tableName, Key: keyOf({ cluster, key }), ConsistentRead: true });
    const { Item: attributes } = await call('dynamodb:GetItem', () => client.send(command, bound));
    return attributes && itemFrom(attributes);
  };

  const getAll = async (keys: readonly ItemKey[]): Promise<readonly (Item | undefined)[]> => {
    const request = { Keys: keys.map(keyOf), ConsistentRead: true };
    const command = new BatchGetItemCommand({ RequestItems: { [tableName]: request } });
    const reply = await call('dynamodb:BatchGetItem', () => client.send(command, bound));
    const found = (reply.Responses?.[tableName] ?? []).map(listedItemFrom);
    const items = new Map(found.map((item) => [idOf(item), item]));
    // A throttled table omits items.
    const isWhole = Object.keys(reply.UnprocessedKeys ?? {}).length === 0;
    const read = async (key: ItemKey) => items.get(idOf(key)) ?? (isWhole ? undefined : get(key.cluster, key.key));
    return Promise.all(keys.map(read));
  };

  async function* pages(
    cluster: string,
    prefix: string,
    beforeNext?: () => Promise<void>,
  ): AsyncGenerator<readonly Item[]> {
    const query = {
      TableName: tableName,
      ConsistentRead: true,
      KeyConditionExpression:
        prefix === '' ? '#cluster = :cluster' : '#cluster = :cluster AND begins_with(#key, :prefix)',
      ExpressionAttributeNames: { '#cluster': 'cluster', ...(prefix !== '' && { '#key': 'key' }) },
      ExpressionAttributeValues: { ':cluster': { S: cluster }, ...(prefix !== '' && { ':prefix': { S: prefix } }) },
    };
    let start: QueryCommandOutput['LastEvaluatedKey'];
    do {
      if (start !== undefined) await beforeNext?.();
      const command = new QueryCommand({ ...query, ...defined({ ExclusiveStartKey: start }) });
      const page: QueryCommandOutput = await call('dynamodb:Query', () => client.send(command, bound));
      yield (page.Items ?? []).map(listedItemFrom);
      start = page.LastEvaluatedKey;
    } while (start !== undefined);
  }

  /**
   * Returns the outcome of a failed write, or throws the failure. If the write had a single attempt and the table refused
   * it, the write did not happen. Otherwise an attempt may have succeeded although its reply was lost: then the traces in
   * the current item prove the success (`provenResult`). If the previous item is unchanged, the failure is thrown,
   * because an attempt may still be in flight.
   */
  const settle = async (error: unknown, item: Item, previous: Item | undefined): Promise<WriteResult> => {
    const certain = attemptsOf(error) === 1 && isRefusal(error);
    if (error instanceof ConditionalCheckFailedException) {
      const current = itemIn(error);
      if (certain) return { outcome: 'lost', current };
      return provenResult(item, previous, current ?? (await get(item.cluster, item.key))) ?? { outcome: 'unclear' };
    }
    const failure = await toTableError(error, 'dynamodb:PutItem');
    if (certain || deadline.aborted) throw failure;
    const there = await get(item.cluster, item.key).catch(() => Promise.reject(failure));
    const proven = provenResult(item, previous, there);
    if (proven !== undefined) return proven;
    if (there?.writeId === previous?.writeId) throw failure;
    return { outcome: 'unclear' };
  };

  return {
    get,
    getAll,
    pages,

    list: async (cluster, prefix) => {
      const items: Item[] = [];
      for await (const page of pages(cluster, prefix)) items.push(...page);
      return items;
    },

    put: async (content, previous) => {
      const item = itemOf(content, previous, newWriteId(), nowMs());
      const command = new PutItemCommand({
        TableName: tableName,
        Item: attributesOf(item),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...(previous === undefined ? IS_ABSENT : isStill(previous)),
      });
      try {
        deadline.throwIfAborted();
        await client.send(command, bound);
        return { outcome: 'won', item };
      } catch (error) {
        // Every retry of the SDK writes the same item with the same writeId.
        return settle(error, item, previous);
      }
    },
  };
}

/** Returns the item for which a condition failed. Not every server sends this item. */
function itemIn({ Item: attributes }: ConditionalCheckFailedException): Item | undefined {
  return attributes && listedItemFrom(attributes);
}
