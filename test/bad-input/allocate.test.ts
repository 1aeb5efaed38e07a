import { beforeEach, expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';

const request: Pick<AllocateRequest, 'requestId' | 'operation' | 'items'> = {
  requestId: 'r1',
  operation: 'allocate',
  items: [
    { range: 'serviceips', next: true },
    { range: 'servicenodeports', value: 30_001 },
  ],
};

let world: AllocateWorld;

beforeEach(async () => {
  world = await anAllocateWorld();
  await world.repair(world.clock.nowMs);
});

/** Replaces the value of an item with the result of `change`. */
async function replace(key: string, change: (value: object) => object, schema?: number): Promise<void> {
  const previous = await world.table.get(CLUSTER, key);
  const value = { ...change((previous?.value ?? {}) as object) };
  await world.table.put({ cluster: CLUSTER, key, schema: schema ?? previous?.schema ?? 1, value }, previous);
}

const garbage = () => ({ nonsense: true });
const spoilAnswer = async () => {
  await world.ask(request);
  await replace('requests/r1', (value) => ({ ...value, answer: '{"outcome":"perhaps"}' }));
};

test.each<[string, string, () => Promise<void>, string, string]>([
  ['a corrupt record of a request', 'requests/r1', () => replace('requests/r1', garbage), 'Corrupt', 'state is '],
  ['a corrupt range', 'ranges/serviceips', () => replace('ranges/serviceips', garbage), 'Corrupt', 'range is not of'],
  ['a corrupt stored answer', 'requests/r1', spoilAnswer, 'Corrupt', 'its answer is not valid'],
  ['a record of a later version', 'requests/r1', () => replace('requests/r1', garbage, 2), 'SchemaTooNew', 'schema 2'],
])('a request fails if it reads %s, and leaves that item unchanged', async (_, key, spoil, code, pattern) => {
  await spoil();
  const before = await world.items();
  const message = expect.stringMatching(new RegExp(`${CLUSTER}/${key}.*${pattern}`));
  await expect(world.ask(request)).rejects.toMatchObject({ code, message });
  expect(await world.items()).toEqual(before);
});
