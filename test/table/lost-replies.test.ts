import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { createTable } from '../../lib/table/dynamodb-client.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { ConfiguredRange } from '../../lib/table/range-allocations.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { startTableServer, type TableServer } from '../../local/table-server.ts';
import { newCluster, won } from '../contract/key-value-table.ts';
import { AT_ONCE } from '../support/each-table.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { countedWriteIds } from '../support/memory-table.ts';
import { allocationsOf, pickLowest } from '../support/ranges.ts';
import { testDynamoClient } from '../support/test-dynamo-client.ts';

const TABLE = 'kube-bootstrap-controller';
const IP = '10.0.0.7';
const newWriteId = countedWriteIds();

let dynalite: TableServer;
let proxy: FaultProxy;
let clients: DynamoDBClient[];
let faulty: KeyValueTable;
let sound: KeyValueTable;
let range: ConfiguredRange<string>;

beforeAll(async () => {
  dynalite = await startTableServer({ key: 'test' });
  proxy = await startFaultProxy(dynalite.endpoint);
  clients = [proxy, dynalite].map(({ endpoint }) => testDynamoClient(endpoint));
  const [viaProxy, direct] = clients.map((client) =>
    dynamoDbTable({ client, tableName: TABLE, deadline: new AbortController().signal, nowMs: () => 0, newWriteId }),
  );
  if (viaProxy === undefined || direct === undefined || clients[1] === undefined) throw new Error('no clients');
  [faulty, sound] = [viaProxy, direct];
  await createTable(clients[1], TABLE, { pollMs: 1 });
});

afterAll(async () => {
  for (const client of clients) client.destroy();
  await proxy.close();
  await dynalite.close();
});

beforeEach(async () => {
  range = {
    cluster: newCluster(),
    key: RANGE_KEYS.primary,
    allocator: 'table',
    rangesGeneration: 1,
    emptyAllocator: () => {
      const empty = ipRangeOf('10.0.0.0/24', pickLowest);
      if (empty instanceof AllocatorError) throw empty;
      return empty;
    },
  };
  const nothing = new Uint8Array(0);
  const strikes = { once: nothing, twice: nothing };
  const stored = {
    range: '10.0.0.0/24',
    data: nothing,
    allocator: 'table',
    generation: 1,
    strikes,
    holds: [],
  } as const;
  won(await saveRange(sound, range.cluster, range.key, stored, undefined));
});

const over = (table: KeyValueTable) => allocationsOf(table, range, AT_ONCE);
const takenBits = async () => {
  const read = await readRange(sound, range.cluster, range.key);
  return [...bitsOf(read?.stored.data ?? new Uint8Array(0))];
};

describe('When the reply to the write is lost', () => {
  test('an allocation is this caller’s, and is made once', async () => {
    proxy.plan('PutItem', { kind: 'dropReply' });
    expect(await over(faulty).allocateNext()).toEqual({ item: '10.0.0.17' });
    expect(await takenBits()).toEqual([16]);
  });

  test('a release is done', async () => {
    expect(await over(sound).allocateOne(IP)).toBeUndefined();
    proxy.plan('PutItem', { kind: 'dropReply' });
    expect(await over(faulty).releaseOne(IP)).toBeUndefined();
    expect(await takenBits()).toEqual([]);
  });

  test('and the address already has its next owner, a release does not free it again', async () => {
    expect(await over(sound).allocateOne(IP)).toBeUndefined();
    proxy.plan('PutItem', { kind: 'dropReply', meanwhile: () => over(sound).allocateOne(IP) });
    expect(await over(faulty).releaseOne(IP)).toBeUndefined();
    expect(await takenBits()).toEqual([6]);
  });

  test('and another address was allocated meanwhile, an allocation is this caller’s', async () => {
    proxy.plan('PutItem', { kind: 'dropReply', meanwhile: () => over(sound).allocateNext() });
    expect(await over(faulty).allocateOne(IP)).toBeUndefined();
    expect(await takenBits()).toEqual([6, 16]);
  });
});

describe('When the process ends before its write', () => {
  test('an address stays with its owner', async () => {
    expect(await over(sound).allocateOne(IP)).toBeUndefined();
    const drop = { kind: 'dropRequest' } as const;
    proxy.plan('PutItem', drop, drop, drop);
    await expect(over(faulty).releaseOne(IP)).rejects.toMatchObject({ code: 'Unavailable' });
    expect(await takenBits()).toEqual([6]);
  });
});
