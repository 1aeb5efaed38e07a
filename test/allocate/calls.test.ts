import { expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { anAllocateWorld } from '../support/allocate-world.ts';
import { CutCalls } from '../support/cut-calls.ts';

const items: AllocateRequest['items'] = [{ range: 'serviceips', value: '10.0.0.1' }];
const RECORD = 'put requests/r1';
const FOUR = ['getAll', RECORD, `put ${RANGE_KEYS.primary}`, RECORD, 'done'];
const READ = `get ${RANGE_KEYS.primary}`;

const ONE = ['getAll', 'done'];

test.each<[string, Partial<AllocateRequest>, 'free' | 'taken' | 'repeated', string[]]>([
  ['to allocate an address makes four calls', {}, 'free', FOUR],
  ['to allocate any address makes four calls', { items: [{ range: 'serviceips', next: true }] }, 'free', FOUR],
  ['that is refused makes six calls', {}, 'taken', ['getAll', RECORD, READ, RECORD, READ, RECORD, 'refused']],
  ['to release an address makes four calls', { operation: 'release' }, 'taken', FOUR],
  ['to look up an address makes one call', { operation: 'lookUp' }, 'free', ONE],
  ['that is repeated makes one call', {}, 'repeated', ONE],
])('a request %s to the table', async (_, fields, before, expected) => {
  const world = await anAllocateWorld();
  const request = { items, ...fields };
  if (before === 'taken') await world.store(RANGE_KEYS.primary, { data: fromBits([0]) });
  if (before === 'repeated') await world.ask(request);
  const calls = new CutCalls();
  const { outcome } = await world.ask(request, calls.table(world.table));
  expect([...calls.made, outcome]).toEqual(expected);
});
