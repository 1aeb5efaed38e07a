import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type AllocationHandler, allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type AllocateWorld, anAllocateWorld } from '../support/allocate-world.ts';
import { runs } from '../support/properties.ts';
import { tableThrough } from '../support/table-through.ts';

/** Returns a table whose calls run in the order that the scheduler chooses. */
function stepping(table: KeyValueTable, scheduler: fc.Scheduler): KeyValueTable {
  return tableThrough(table, (call) => scheduler.schedule(Promise.resolve()).then(call));
}

/** Returns a world in which only the first `free` addresses of the dynamic band of the /24 are free. */
async function withFree(free: number): Promise<AllocateWorld> {
  const world = await anAllocateWorld();
  const bits = Array.from({ length: 254 }, (_, bit) => bit).filter((bit) => bit < 16 || bit >= 16 + free);
  await world.store(RANGE_KEYS.primary, { data: fromBits(bits) });
  return world;
}

const held = async (world: AllocateWorld, id: string) =>
  Object.entries(await world.taken())
    .filter(([, requestId]) => requestId === id)
    .map(([item]) => item)
    .sort();
const valuesIn = ({ outcome, items }: Answer) =>
  outcome === 'refused' ? [] : items.map(({ value }) => String(value)).sort();
const plain = ({ replayed: _, ...answer }: Answer) => answer;

const anItem = fc.constantFrom<AllocateRequest['items'][number]>(
  { range: 'serviceips', next: true },
  { range: 'serviceips', next: true, count: 2 },
  { range: 'serviceips', value: '10.0.0.17' },
  { range: 'servicenodeports', next: true },
  { range: 'servicenodeports', value: 30_001 },
);
const someItems = fc.array(anItem, { minLength: 1, maxLength: 3 });

test('simultaneous invocations of one request return the same answer in any interleaving, and the request holds exactly the items in the answer', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    someItems,
    someItems,
    fc.integer({ min: 0, max: 4 }),
    async (scheduler, items, others, free) => {
      const world = await withFree(free);
      const table = stepping(world.table, scheduler);
      const ask = () => world.ask({ items }, table);
      const [first, second, third, other] = await scheduler.waitFor(
        Promise.all([ask(), ask(), ask(), world.ask({ requestId: 'r2', items: others }, table)]),
      );
      expect(plain(second)).toEqual(plain(first));
      expect(plain(third)).toEqual(plain(first));
      // At most one invocation completed the request. The others mark their answer as replayed.
      expect([first, second, third].filter(({ replayed }) => replayed !== true).length).toBeLessThanOrEqual(1);
      expect(await held(world, 'r1')).toEqual(valuesIn(first));
      expect(await held(world, 'r2')).toEqual(valuesIn(other));
      expect(plain(await world.ask({ items }))).toEqual(plain(first));
    },
  );
  await fc.assert(property, { numRuns: runs(40) });
});

test('if the items of the first invocation of a request are already claimed, a second invocation releases its own items', async () => {
  const world = await withFree(4);
  const items: AllocateRequest['items'] = [{ range: 'serviceips', next: true }];
  let puts = 0;
  let first: Answer | undefined;
  const late = tableThrough(world.table, async (call, name) => {
    // The first write is the record of the request, the second one is the range.
    if (name === 'put' && ++puts === 2) {
      first = await world.ask({ items });
      const claimed: AllocateRequest['items'] = [{ range: 'serviceips', value: valuesIn(first)[0] ?? '' }];
      await world.ask({ requestId: 'r2', items: claimed, takeUp: {} });
    }
    return call();
  });
  const second = await world.ask({ items }, late);
  expect(first?.outcome).toBe('done');
  expect(plain(second)).toEqual(plain(first ?? second));
  expect(await held(world, 'r2')).toEqual(valuesIn(second));
  expect(await held(world, 'r1')).toEqual([]);
});

const CALLERS = 50;
const ADDRESSES = 254;

/** Tests the handler that is deployed as a function. The contract suite of the table tests fifty writers over DynamoDB. */
test.each([
  { processes: 50, retries: expect.any(Number) },
  // The callers of one process take turns.
  { processes: 1, retries: 0 },
])('50 concurrent callers in $processes processes get each address of a /24 once', async ({ processes, retries }) => {
  const handlers = Array.from({ length: processes }, () => allocation());
  let asked = 0;
  const handler: AllocationHandler = (event, context) => {
    const [first = allocation()] = handlers;
    return (handlers[asked % processes] ?? first)(event, context);
  };
  const world = await anAllocateWorld({ handler });
  const ask = (count: number) => {
    asked += 1;
    return world.ask({ requestId: `request-${asked}`, items: [{ range: 'serviceips', next: true, count }] });
  };
  const atOnce = (callers: number, count: number) => Promise.all(Array.from({ length: callers }, () => ask(count)));
  const answers = [...(await atOnce(CALLERS, 1)), ...(await atOnce(CALLERS, 4))];
  expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => 'done'));
  // Four addresses are free, and five callers request one each.
  answers.push(...(await atOnce(5, 1)));

  const given = answers.flatMap(({ outcome, items }) => (outcome === 'done' ? items : []));
  const addresses = given.map(({ value }) => String(value));
  expect(addresses).toHaveLength(ADDRESSES);
  expect(new Set(addresses).size).toBe(ADDRESSES);
  const taken = await world.taken();
  expect(Object.keys(taken).sort()).toEqual(addresses.toSorted());
  for (const { requestId, outcome, items } of answers) {
    if (outcome === 'done') for (const { value } of items) expect(taken[String(value)]).toBe(requestId);
  }
  const refusals = answers.flatMap(({ error }) => error ?? []);
  expect(refusals).toEqual([{ code: 'Full', message: 'range is full' }]);
  const counted = { allocations: ADDRESSES, allocationRetries: retries, 'allocationsRefused{type=Full}': 1 };
  expect(world.telemetry.counters).toMatchObject(counted);
});
