import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import { expect, test } from '@jest/globals';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { ConfiguredRange } from '../../lib/table/range-allocations.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { countedWriteIds } from '../support/memory-table.ts';
import { allocationsOf, made, pickLowest } from '../support/ranges.ts';

const CALLERS = 10;
const ADDRESSES_EACH = 50;
const CIDR = '10.0.0.0/20';

test('Ten callers allocate five hundred addresses and release half of them: with every third reply lost, no address has two owners', async () => {
  const { client, lost } = lossyDynamo(3);
  const deadline = new AbortController().signal;
  const newWriteId = countedWriteIds();
  const table = dynamoDbTable({ client, tableName: 'in-memory', deadline, nowMs: () => 0, newWriteId });
  const range: ConfiguredRange<string> = {
    cluster: 'demo',
    key: RANGE_KEYS.primary,
    rangesGeneration: 1,
    emptyAllocator: () => {
      return made(ipRangeOf(CIDR, pickLowest));
    },
  };
  const empty = storedRange({ range: CIDR, data: new Uint8Array() });
  await saveRange(table, range.cluster, range.key, empty, undefined);

  const allocations = allocationsOf(table, range, { attempts: 1_000, wait: async () => {} });
  const owned = new Set<string>();
  const call = async () => {
    for (let count = 0; count < ADDRESSES_EACH; count++) {
      const { item } = made(await allocations.allocateNext());
      expect(owned.has(item)).toBe(false);
      owned.add(item);
      if (count % 2 === 0) continue;
      // The lowest free one is the next that a caller gets: a release that happened twice would free that caller's address.
      owned.delete(item);
      expect(await allocations.releaseOne(item)).toBeUndefined();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));

  const stored = (await readRange(table, range.cluster, range.key))?.stored;
  const taken = made(ipRangeOf(CIDR, pickLowest));
  expect(taken.restore(stored ?? empty)).toBeUndefined();
  expect(new Set(taken.items())).toEqual(owned);
  expect(owned.size).toBe((CALLERS * ADDRESSES_EACH) / 2);
  expect(lost()).toBeGreaterThan(CALLERS);
});

type Attributes = Record<string, AttributeValue>;

/**
 * A client whose table is in this process: gets, and the conditional puts of `dynamoDbTable`. Every `loses`th put over an
 * item loses its reply; as the SDK does, the client then makes a second attempt.
 */
function lossyDynamo(loses: number): { readonly client: DynamoDBClient; readonly lost: () => number } {
  const items = new Map<string, Attributes>();
  let puts = 0;
  let lost = 0;
  const idOf = (attributes: Attributes = {}) => JSON.stringify([attributes['cluster']?.S, attributes['key']?.S]);

  const put = ({ Item, ExpressionAttributeValues }: PutItemCommand['input'], attempts: number): void => {
    const expected = ExpressionAttributeValues?.[':previous']?.S;
    if (items.get(idOf(Item))?.['writeId']?.S !== expected) {
      throw new ConditionalCheckFailedException({ message: 'refused', $metadata: { attempts, httpStatusCode: 400 } });
    }
    if (Item !== undefined) items.set(idOf(Item), Item);
  };

  const putLosing = async (input: PutItemCommand['input']): Promise<void> => {
    lost += 1;
    try {
      put(input, 1);
    } catch {
      // This reply is lost, too.
    }
    // Others come first.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    put(input, 2);
  };

  const send = async (command: unknown): Promise<object> => {
    await new Promise(setImmediate);
    if (command instanceof GetItemCommand) {
      const Item = items.get(idOf(command.input.Key));
      return Item === undefined ? {} : { Item };
    }
    if (!(command instanceof PutItemCommand)) throw new Error('not a command of this table');
    const isOver = command.input.ExpressionAttributeValues !== undefined;
    if (isOver && ++puts % loses === 0) await putLosing(command.input);
    else put(command.input, 1);
    return {};
  };

  return {
    client: { send, config: { region: async () => 'eu-test-1' } } as unknown as DynamoDBClient,
    lost: () => lost,
  };
}
