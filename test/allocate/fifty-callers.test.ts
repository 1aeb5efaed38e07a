import { expect, test } from '@jest/globals';
import { allocation } from '../../lib/allocate/allocation.ts';
import { anAllocateWorld } from '../support/allocate-world.ts';

const CALLERS = 50;
const ADDRESSES = 254;

/** The handler of the function as it is deployed. The contract suite of the table has fifty writers over DynamoDB. */
test('Fifty concurrent callers get each address of a /24 once, and the 255th request is refused because it is full', async () => {
  const world = await anAllocateWorld({ handler: allocation() });
  let asked = 0;
  const ask = (count: number) => {
    asked += 1;
    return world.ask({ requestId: `request-${asked}`, items: [{ range: 'serviceips', next: true, count }] });
  };
  const atOnce = (callers: number, count: number) => Promise.all(Array.from({ length: callers }, () => ask(count)));
  const answers = [...(await atOnce(CALLERS, 1)), ...(await atOnce(CALLERS, 4))];
  expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => 'done'));
  // Four are left, and five want one.
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
  expect(world.telemetry.counters).toMatchObject({ allocations: ADDRESSES, 'allocationsRefused{type=Full}': 1 });
});
