import { describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { costTable } from '../../tools/cost.ts';
import { type Fleet, monthlyCost, totalOf, usageOf, withParameterStore } from '../../tools/cost-calculation.ts';
import { countUsage } from './fleet-usage.ts';

const FLEET: Fleet = { clusters: 2, servers: 3, services: 50 };

describe('the calculated usage of a fleet', () => {
  test.each<[string, Fleet]>([
    ['one cluster', { ...FLEET, clusters: 1 }],
    ['one API server', { ...FLEET, servers: 1 }],
    ['twelve API servers', { ...FLEET, servers: 12 }],
    ['more clusters than fit into a message', { ...FLEET, clusters: 20 }],
    ['messages of one cluster', { ...FLEET, clustersPerTick: 1 }],
    ['an interval of 30 s', { ...FLEET, interval: 30 }],
    ['an interval of a minute', { ...FLEET, interval: 60 }],
  ])('the calculated usage equals the counted usage of a run with %s', async (_what, fleet) => {
    const counted = await countUsage(fleet);
    for (const loop of LOOPS) {
      const { logBytes, ...calls } = usageOf(loop, fleet);
      const { logBytes: countedBytes = 0, ...countedCalls } = counted.get(loop) ?? {};
      expect({ loop, ...calls }).toEqual({ loop, ...countedCalls });
      // Log lines have different lengths, because the numbers in them have.
      expect(Math.abs(logBytes / countedBytes - 1)).toBeLessThan(0.1);
    }
  });
});

describe('the cost of a month', () => {
  test('the cost of a month is the sum of its lines, and each line has a price', () => {
    const lines = monthlyCost({ ...FLEET, clusters: 100 });
    expect(lines.filter(({ dollars, quantity }) => !(dollars > 0 && quantity > 0))).toEqual([]);
    expect(totalOf(lines)).toBeCloseTo(lines.reduce((sum, { dollars }) => sum + dollars, 0));
  });

  test('the leases of five API servers cost one write unit every ten seconds, and those of seven cost two', () => {
    const writes = (servers: number) =>
      monthlyCost({ clusters: 1, servers, services: 0 }).find(({ unit }) => unit === 'write units')?.quantity ?? 0;
    expect(writes(5)).toBe(writes(1));
    expect(writes(7) - writes(5)).toBeCloseTo(6 * 60 * 730 + 60 * 730);
  });

  test('with kubeconfigs in Parameter Store, the cost per cluster and month is at most $0.75 for 100 clusters, and $0.60 for 1,000', () => {
    const perCluster = (clusters: number) =>
      totalOf(withParameterStore(monthlyCost({ clusters, servers: 3, services: 50 }))) / clusters;
    expect(perCluster(100)).toBeLessThanOrEqual(0.75);
    expect(perCluster(1_000)).toBeLessThanOrEqual(0.6);
  });

  test('the cost of a month grows with clusters, API servers and Services', () => {
    const total = (change: Partial<Fleet>) => totalOf(monthlyCost({ ...FLEET, ...change }));
    for (const change of [{ clusters: 3 }, { servers: 4 }, { services: 5_000 }]) {
      expect(total(change)).toBeGreaterThan(total({}));
    }
  });
});

test('npm run cost prints the lines, the total and the cost per cluster', () => {
  const text = costTable(['--clusters', '100', '--servers', '3']);
  expect(text).toMatch(/^US dollars per month: 100 clusters with 3 API servers and 50 Services each\n/);
  expect(text).toMatch(/^DynamoDB +37,960,000 write units +23\.73 +0\.237$/m);
  expect(text).toMatch(/^total +\d+\.\d\d +\d\.\d{3}$/m);
});

test.each([
  [['--clusters', '0'], '--clusters is "0": write a whole number from 1 to 10000.'],
  [['--servers', '33'], '--servers is "33": write a whole number from 1 to 32.'],
  [['--services='], '--services is "": write a whole number from 0 to 65000.'],
  [['--nodes', '3'], "Unknown option '--nodes'"],
])('npm run cost refuses %j', (args, message) => {
  expect(() => costTable(args)).toThrow(message);
});
