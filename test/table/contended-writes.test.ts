import { expect, test } from '@jest/globals';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { ConfiguredRange } from '../../lib/table/range-allocations.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { storedRange } from '../repair/repair-cluster.ts';
import { lossyDynamo } from '../support/lossy-dynamo.ts';
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
    allocator: 'table',
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
