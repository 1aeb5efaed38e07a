import { expect, test } from '@jest/globals';
import { PRICES } from '../../tools/cost-calculation.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { readInRepository } from '../support/repository.ts';
import { metered } from './fleet-usage.ts';

const REQUEST = { cluster: CLUSTER, operation: 'allocate', items: [{ range: 'serviceips', next: true }] };

/** Returns the units of DynamoDB that a request takes in a range with this number of holds. */
async function unitsOf(range: string, holds: number) {
  const world = await anAllocateWorld({ spec: { serviceClusterIPRanges: [range] } });
  const requestId = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
  for (let n = 0; n < holds; n += 1) await world.send({ ...REQUEST, requestId: requestId(n) });
  const units = { readUnits: 0, writeUnits: 0 };
  const table = metered(world.table, (figure, more) => {
    if (figure === 'readUnits' || figure === 'writeUnits') units[figure] += more;
  });
  await expect(world.send({ ...REQUEST, requestId: requestId(holds) }, table)).resolves.toMatchObject({
    outcome: 'done',
  });
  return units;
}

test.each([
  ['10.0.0.0/24', 0],
  ['10.0.0.0/24', 100],
  ['10.0.0.0/16', 0],
])('docs/cost.md has the price of a million requests to allocate in %s with %i other holds', async (range, holds) => {
  const { readUnits, writeUnits } = await unitsOf(range, holds);
  const dollars = 1e6 * (readUnits * PRICES.readUnit + writeUnits * PRICES.writeUnit);
  const row = `| ${range.slice(-3)}, ${holds} | ${readUnits} | ${writeUnits} | $${dollars.toFixed(2)} |`;
  expect(readInRepository('docs/cost.md')).toContain(row);
});
