import { expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { anAllocateWorld } from '../support/allocate-world.ts';
import { CutCalls } from '../support/cut-calls.ts';

const items: AllocateRequest['items'] = [{ range: 'serviceips', value: '10.0.0.1' }];
const RECORD = 'put requests/r1';
const FOUR = ['getAll', RECORD, `put ${RANGE_KEYS.primary}`, RECORD];

/** Returns the calls of the table that a request makes. In the range, the address of the request has the given state. */
async function callsOf(request: Partial<AllocateRequest>, { isTaken = false, isRepeated = false } = {}) {
  const world = await anAllocateWorld();
  if (isTaken) await world.store(RANGE_KEYS.primary, { data: fromBits([0]) });
  if (isRepeated) await world.ask({ items, ...request });
  const calls = new CutCalls();
  const { outcome } = await world.ask({ items, ...request }, calls.table(world.table));
  return { outcome, calls: calls.made };
}

test.each<[string, Partial<AllocateRequest>, boolean]>([
  ['to allocate an address', {}, false],
  ['to allocate any address', { items: [{ range: 'serviceips', next: true }] }, false],
  ['to release an address', { operation: 'release' }, true],
])('a request %s makes four calls of the table', async (_, request, isTaken) => {
  expect(await callsOf(request, { isTaken })).toEqual({ outcome: 'done', calls: FOUR });
});

test.each<[string, Partial<AllocateRequest>, boolean]>([
  ['a look-up', { operation: 'lookUp' }, false],
  ['a repetition', {}, true],
])('%s makes one call of the table', async (_, request, isRepeated) => {
  expect(await callsOf(request, { isRepeated })).toEqual({ outcome: 'done', calls: ['getAll'] });
});
