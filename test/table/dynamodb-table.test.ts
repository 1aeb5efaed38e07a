import { randomUUID } from 'node:crypto';
import { DeleteItemCommand, type DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { listClusters } from '../../lib/table/clusters.ts';
import { keyOf } from '../../lib/table/dynamodb/dynamodb-items.ts';
import { type DynamoClientOptions, dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import type { Item, KeyValueTable } from '../../lib/table/key-value-table.ts';
import { createTable } from '../../local/table-client.ts';
import { describeKeyValueTable, NOW_MS, newCluster, won } from '../contract/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import {
  answer,
  cutReply,
  dropReply,
  dropReplyAfter,
  dropRequest,
  type Fault,
  type FaultProxy,
  hang,
  serviceError,
  startFaultProxy,
  throttle,
  truncateReply,
} from '../support/fault-proxy.ts';
import { runningTableServer, testDynamoClient } from '../support/test-dynamo-client.ts';

const TABLE = 'kube-bootstrap-controller';

const server = runningTableServer();

beforeAll(() => createTable(server.client, TABLE));

function openTable(client: DynamoDBClient, deadline = new AbortController().signal, tableName = TABLE): KeyValueTable {
  return dynamoDbTable({ client, tableName, deadline, nowMs: () => NOW_MS, newWriteId: randomUUID });
}

describeKeyValueTable('DynamoDB table', {
  open: (deadline) => openTable(server.client, deadline),
  remove: (cluster, key) =>
    server.client.send(new DeleteItemCommand({ TableName: TABLE, Key: keyOf({ cluster, key }) })),
  oddities: ['counts the characters of a text, not its bytes'],
});

async function attributesOf(cluster: string, key: string) {
  return (await server.client.send(new GetItemCommand({ TableName: TABLE, Key: keyOf({ cluster, key }) }))).Item;
}

test('an item has the documented attributes, and its ttl is an hour after its expiry, rounded up to seconds', async () => {
  const cluster = newCluster();
  const value = { generation: 1 };
  const item = { cluster, key: 'masterleases/10.0.0.1', value, schema: 3, expiresAtMs: NOW_MS + 1 };
  const { writeId } = won(await openTable(server.client).put(item, undefined));
  expect(await attributesOf(cluster, item.key)).toEqual({
    cluster: { S: cluster },
    key: { S: item.key },
    value: { M: { generation: { N: '1' } } },
    writeId: { S: writeId },
    version: { N: '1' },
    schema: { N: '3' },
    updatedAt: { S: '2026-11-21T03:00:00.123Z' },
    expiresAtMs: { N: String(NOW_MS + 1) },
    ttl: { N: String(Date.UTC(2026, 10, 21, 4, 0, 1) / 1000) },
  });
});

const numbers = { version: { N: '1' }, schema: { N: '1' } };
const whole = { value: { S: 'x' }, writeId: { S: 'w' }, updatedAt: { S: '2026-11-21T03:00:00.123Z' }, ...numbers };

test.each([
  ['no write id', { ...whole, writeId: undefined }, 'writeId'],
  ['no schema', { ...whole, schema: undefined }, 'schema'],
  ['no value', { ...whole, value: undefined }, 'value'],
  ['a set in a list', { ...whole, value: { L: [{ SS: ['x'] }] } }, 'value'],
  ['an invalid date', { ...whole, updatedAt: { S: 'yesterday' } }, 'updatedAt'],
])('an item of another writer is corrupt if it has %s', async (_, attributes, named) => {
  const cluster = newCluster();
  const defined = Object.fromEntries(Object.entries(attributes).filter(([, attribute]) => attribute !== undefined));
  const Item = { ...(defined as typeof whole), cluster: { S: cluster }, key: { S: 'a' } };
  await server.client.send(new PutItemCommand({ TableName: TABLE, Item }));
  await expect(openTable(server.client).get(cluster, 'a')).rejects.toMatchObject({
    code: 'Corrupt',
    message: expect.stringContaining(`${cluster}/a has no readable attribute "${named}"`),
  });
});

test('registrations are listed even if another writer has stored an item among them', async () => {
  const table = openTable(server.client);
  const { spec } = await registerCluster(table, aClusterSpec({ name: 'beside' }));
  const Item = { cluster: { S: '#clusters' }, key: { S: 'another' }, note: { S: 'by hand' } };
  await server.client.send(new PutItemCommand({ TableName: TABLE, Item }));
  const { clusters, unreadable } = await listClusters(table);
  expect(clusters).toMatchObject([{ spec }]);
  expect(unreadable).toMatchObject([{ name: 'another', error: { code: 'Corrupt' } }]);
});

describe('a DynamoDB table behind a faulty network', () => {
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  let table: KeyValueTable;
  let cluster: string;

  const connect = (options: DynamoClientOptions = {}) => testDynamoClient(proxy.endpoint, options);
  const competitor = () => openTable(server.client);
  const attempts = (operation: string) => proxy.operations.filter((asked) => asked === operation).length;
  const putNew = async (value = 'old'): Promise<Item> =>
    won(await competitor().put({ cluster, key: 'a', value, schema: 1 }, undefined));
  const overwrite = async (value = 'theirs') => {
    const current = await competitor().get(cluster, 'a');
    return won(await competitor().put({ cluster, key: 'a', value, schema: 1 }, current));
  };
  const valueThere = async () => (await competitor().get(cluster, 'a'))?.value;
  const ours = () => ({ cluster, key: 'a', value: 'ours', schema: 1 });

  beforeEach(async () => {
    proxy = await startFaultProxy(server.endpoint);
    afterThisTest(proxy.close);
    client = connect();
    afterThisTest(() => client.destroy());
    table = openTable(client);
    cluster = newCluster();
  });

  const thrice = (fault: Fault) => [fault, fault, fault];
  /** Returns a fault: the reply is dropped, and other writers overwrite the item this many times before the next attempt. */
  const overwrittenTimes = (times: number) =>
    dropReplyAfter(async () => {
      for (let count = 0; count < times; count++) await overwrite();
    });
  const overwrittenByAnOlderVersion = dropReplyAfter(async () => {
    const { earlierWrites: _, ...older } = (await attributesOf(cluster, 'a')) ?? {};
    const Item = { ...older, writeId: { S: 'of-an-older-version' } };
    await server.client.send(new PutItemCommand({ TableName: TABLE, Item }));
    await overwrite();
  });

  test.each<[string, 'won' | 'unclear', string, Fault[]]>([
    ['with a lost reply', 'won', 'ours', [dropReply]],
    ['with a lost reply and one later write', 'won', 'theirs', [overwrittenTimes(1)]],
    ['with a lost reply and 64 later writes', 'won', 'theirs', [overwrittenTimes(64)]],
    ['with a lost reply and 65 later writes', 'unclear', 'theirs', [overwrittenTimes(65)]],
    ['with a lost reply and a later write by an older version', 'unclear', 'theirs', [overwrittenByAnOlderVersion]],
    ['that arrives only at its second attempt', 'won', 'ours', [dropRequest]],
    ['without any reply', 'won', 'ours', thrice(dropReply)],
    ['with every reply cut off', 'won', 'ours', thrice(cutReply)],
    ['with every reply truncated at its end', 'won', 'ours', thrice(truncateReply)],
    ['that is overwritten after its third attempt', 'won', 'theirs', [dropRequest, dropRequest, overwrittenTimes(1)]],
    ['that succeeds before its retries are throttled', 'won', 'ours', [dropReply, ...throttle(2)]],
  ])('a put %s has the outcome "%s"', async (_, outcome, value, faults) => {
    const previous = await putNew();
    proxy.plan('PutItem', ...faults);
    expect(await table.put(ours(), previous)).toMatchObject({ outcome });
    expect(await valueThere()).toBe(value);
  });

  test('a put that creates an item has the outcome "won" even if its reply is lost', async () => {
    proxy.plan('PutItem', dropReply);
    won(await table.put(ours(), undefined));
    expect(await valueThere()).toBe('ours');
  });

  test.each([
    ['has the outcome "lost" without a read', [], ['PutItem']],
    ['has the outcome "lost" even if its first reply was dropped', [dropReply], ['PutItem', 'PutItem', 'GetItem']],
  ])('a refused put %s', async (_, faults, operations) => {
    const previous = await putNew();
    await overwrite();
    proxy.plan('PutItem', ...faults);
    expect(await table.put(ours(), previous)).toMatchObject({ outcome: 'lost' });
    expect(proxy.operations).toEqual(operations);
    expect(await valueThere()).toBe('theirs');
  });

  test.each([
    ['that the table refuses', []],
    ['that the table refuses at its second attempt', [dropRequest]],
  ])('a put %s has the outcome "lost", and returns the item that the refusal contains', async (_, faults) => {
    const previous = await putNew();
    const theirs = await overwrite();
    const refused = {
      __type: 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException',
      Item: await attributesOf(cluster, 'a'),
    };
    const base64 = (_: string, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
    proxy.plan('PutItem', ...faults, answer(400, JSON.stringify(refused, base64)));
    expect(await table.put(ours(), previous)).toEqual({ outcome: 'lost', current: theirs });
    expect(attempts('GetItem')).toBe(0);
  });

  const ON_TABLE = /dynamodb:PutItem on table "kube-bootstrap-controller" in region eu-test-1 failed .*try again/;
  test.each<[string, string, Fault[], number, RegExp]>([
    ['that the table does not receive', 'Unavailable', thrice(dropRequest), 3, ON_TABLE],
    ['that is throttled at every attempt', 'Throttled', throttle(9), 3, ON_TABLE],
    ['that is invalid', 'Unexpected', [serviceError(400, 'ValidationException', 'No key')], 1, /keys/],
  ])('a put %s fails with %s', async (_, code, faults, tries, message) => {
    const previous = await putNew();
    proxy.plan('PutItem', ...faults);
    const failure = { code, message: expect.stringMatching(message) };
    await expect(table.put(ours(), previous)).rejects.toMatchObject(failure);
    expect(attempts('PutItem')).toBe(tries);
    expect(await valueThere()).toBe('old');
  });

  test('if a put fails, and the read that checks its outcome fails too, the error of the put is thrown', async () => {
    const previous = await putNew();
    proxy.plan('PutItem', ...thrice(dropRequest));
    proxy.plan('GetItem', ...thrice(dropRequest));
    const message = expect.stringContaining('dynamodb:PutItem');
    await expect(table.put(ours(), previous)).rejects.toMatchObject({ code: 'Unavailable', message });
  });

  describe('reads', () => {
    test.each<[string, Fault]>([
      ['whose first reply is 500', serviceError(500, 'InternalServerError')],
      ['whose first reply is 503', serviceError(503, 'InternalServerError')],
      ['whose first reply is cut off', cutReply],
    ])('a read %s succeeds at the second attempt', async (_, fault) => {
      const item = await putNew();
      proxy.plan('GetItem', fault);
      expect(await table.get(cluster, 'a')).toEqual(item);
    });

    const failing = serviceError(500, 'InternalServerError');
    test.each<[string, 'list' | 'getAll', string, Fault[]]>([
      ['whose replies are all 500', 'list', 'Unavailable', thrice(failing)],
      ['of several items whose replies are all 500', 'getAll', 'Unavailable', thrice(failing)],
      ['with an HTML page as reply', 'list', 'Unavailable', thrice(answer(502, '<html>Bad Gateway</html>'))],
      ['with every reply cut off', 'list', 'Unavailable', thrice(cutReply)],
      ['that are always throttled', 'list', 'Throttled', throttle(9)],
    ])('reads %s fail after three attempts', async (_, call, code, faults) => {
      const operation = call === 'list' ? 'Query' : 'BatchGetItem';
      proxy.plan(operation, ...faults);
      const read = call === 'list' ? table.list(cluster, '') : table.getAll([{ cluster, key: 'a' }]);
      await expect(read).rejects.toMatchObject({ code });
      expect(attempts(operation)).toBe(3);
    });

    test('if the table omits items from a batch, the client reads these items one by one', async () => {
      const item = await putNew();
      const unprocessed = JSON.stringify({ Responses: {}, UnprocessedKeys: { [TABLE]: { Keys: [] } } });
      proxy.plan('BatchGetItem', answer(200, unprocessed));
      const missing = { cluster, key: 'missing' };
      expect(await table.getAll([missing, { cluster, key: 'a' }])).toEqual([undefined, item]);
      expect(proxy.operations).toEqual(['BatchGetItem', 'GetItem', 'GetItem']);
    });

    test('reads that time out at every attempt fail with Unavailable', async () => {
      const impatient = connect({ requestTimeoutMs: 20, maxAttempts: 2 });
      proxy.plan('GetItem', hang, hang);
      const failure = { code: 'Unavailable', cause: { $metadata: { attempts: 2 } } };
      await expect(openTable(impatient).get(cluster, 'a')).rejects.toMatchObject(failure);
      impatient.destroy();
    });
  });

  const calls: [string, string, (item: Item) => Promise<unknown>][] = [
    ['get', 'GetItem', (item) => table.get(item.cluster, item.key)],
    ['getAll', 'BatchGetItem', (item) => table.getAll([item])],
    ['list', 'Query', (item) => table.list(item.cluster, '')],
    ['put', 'PutItem', (item) => table.put({ ...item, value: 2 }, item)],
  ];

  test.each(calls)('the call %s is aborted at the deadline of the pass', async (_, operation, call) => {
    const item = await putNew();
    const pass = new AbortController();
    table = openTable(client, pass.signal);
    proxy.plan(operation, hang);
    const failure = expect(call(item)).rejects.toMatchObject({ name: 'TableError', code: 'DeadlineExceeded' });
    while (attempts(operation) === 0) await new Promise(setImmediate);
    pass.abort(new Error('the pass is over'));
    await failure;
    expect(proxy.operations).toEqual([operation]);
  });
});

test('createTable does not change an existing table or its content', async () => {
  const cluster = newCluster();
  const item = won(await openTable(server.client).put({ cluster, key: 'a', value: 1, schema: 1 }, undefined));
  await createTable(server.client, TABLE);
  expect(await openTable(server.client).get(cluster, 'a')).toEqual(item);
});
