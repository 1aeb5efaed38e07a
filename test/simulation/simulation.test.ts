import { describe, expect, jest, test } from '@jest/globals';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';

// What sleeps does so on the clock of the run, and by its chance.
const LARGE = 2 ** 20;
jest.spyOn(Math, 'random').mockImplementation(() => (Driver.current?.pick(LARGE) ?? 0) / LARGE);
jest.unstable_mockModule('node:timers/promises', () => ({ setTimeout: (ms: number) => Driver.current?.wait(ms) }));
// Both are imported after that: what they import, `guaranteedUpdate` above all, would sleep in real time.
const { Driver } = await import('./driver.ts');
const { simulate } = await import('./simulate.ts');

const { SIMULATION_RUNS = '2', SIMULATION_SEED = '1' } = process.env;
const seeds = Array.from({ length: Number(SIMULATION_RUNS) }, (_, index) => Number(SIMULATION_SEED) + index);
/** Of the history before what was wrong. */
const LINES = 40;

jest.setTimeout(60_000);

/** A run that went wrong is replayed by `SIMULATION_SEED=<seed> SIMULATION_RUNS=1`. */
describe('a cluster whose functions, callers and API servers fail for half an hour', () => {
  test.each(seeds)('has one owner for each address and no healthy API server removed, with seed %i', async (seed) => {
    const { violations, history } = await simulate(seed);
    const before = violations.length === 0 ? [] : history.slice(-LINES);
    expect({ violations, before }).toEqual({ violations: [], before: [] });
  });
});

describe('the simulation', () => {
  test('replays a seed to the letter', async () => {
    const [one, other] = [await simulate(7), await simulate(7)];
    expect(other).toEqual(one);
  });

  test('finds a table that accepts every write, whatever was written before', async () => {
    const unconditional = (table: KeyValueTable): KeyValueTable => ({
      ...table,
      put: async (content) => table.put(content, await table.get(content.cluster, content.key)),
    });
    const found = [];
    for (let seed = 1; seed <= 10 && found.length === 0; seed++) {
      found.push(...(await simulate(seed, unconditional)).violations);
    }
    expect(found).not.toEqual([]);
  });
});
