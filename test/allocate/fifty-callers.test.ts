import { expect, test } from '@jest/globals';
import { type AllocationHandler, allocation } from '../../lib/allocate/allocation.ts';
import { anAllocateWorld } from '../support/allocate-world.ts';

const CALLERS = 50;
const ADDRESSES = 254;

/** Tests the handler that is deployed as a function. The contract suite of the table tests fifty writers over DynamoDB. */
test.each([
  { processes: 50, retries: expect.any(Number) },
  // The callers of one process take turns.
  { processes: 1, retries: 0 },
])(
  'fifty concurrent callers in $processes processes get each address of a /24 once',
  async ({ processes, retries }) => {
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
  },
);
