import { expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { popCount } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { NO_STRIKES } from '../../lib/cluster/stored-range.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { ConfiguredRange } from '../../lib/table/range-allocations.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { lossyDynamo } from '../support/lossy-dynamo.ts';
import { countedWriteIds } from '../support/memory-table.ts';
import { allocationsOf, pickLowest } from '../support/ranges.ts';

const CALLERS = 20;
const ADDRESSES_EACH = 50;
const CIDR = '10.0.0.0/20';

test('A thousand allocations of twenty callers, of which every third write loses its reply, all succeed and give no address twice', async () => {
  const { client, lost } = lossyDynamo(3);
  const deadline = new AbortController().signal;
  const newWriteId = countedWriteIds();
  const table = dynamoDbTable({ client, tableName: 'in-memory', deadline, nowMs: () => 0, newWriteId });
  const range: ConfiguredRange<string> = {
    cluster: 'demo',
    key: RANGE_KEYS.primary,
    allocator: 'table',
    rangesGeneration: 1,
    emptyAllocator: () => {
      const empty = ipRangeOf(CIDR, pickLowest);
      if (empty instanceof AllocatorError) throw empty;
      return empty;
    },
  };
  const empty = { range: CIDR, data: new Uint8Array(), generation: 1, strikes: NO_STRIKES, holds: [] };
  await saveRange(table, range.cluster, range.key, { ...empty, allocator: 'table' }, undefined);

  const allocations = allocationsOf(table, range, { attempts: 1_000, wait: async () => {} });
  const given: string[] = [];
  const call = async () => {
    for (let count = 0; count < ADDRESSES_EACH; count++) {
      const next = await allocations.allocateNext();
      if (!('item' in next)) throw next;
      given.push(next.item);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));

  expect(new Set(given).size).toBe(CALLERS * ADDRESSES_EACH);
  const stored = (await readRange(table, range.cluster, range.key))?.stored;
  expect(popCount(stored?.data ?? new Uint8Array())).toBe(CALLERS * ADDRESSES_EACH);
  expect(lost()).toBeGreaterThan(CALLERS);
});
