// Prints what a stack costs in a month: npm run cost -- --clusters 20 --servers 3 --services 400
import { parseArgs } from 'node:util';
import { type CostLine, type Fleet, monthlyCost, PRICES, totalOf, withParameterStore } from './cost-calculation.ts';

const LIMITS = {
  clusters: { least: 1, most: 10_000, standard: 100 },
  servers: { least: 1, most: 32, standard: 3 },
  services: { least: 0, most: 65_000, standard: 50 },
} as const;

const TEXT = { type: 'string' } as const;

export function costTable(args: readonly string[]): string {
  const { values } = parseArgs({ args: [...args], options: { clusters: TEXT, servers: TEXT, services: TEXT } });
  const numberOf = (name: keyof typeof LIMITS) => {
    const { least, most, standard } = LIMITS[name];
    const { [name]: text = String(standard) } = values;
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= least && number <= most) return number;
    throw new RangeError(`--${name} is ${JSON.stringify(text)}: write a whole number from ${least} to ${most}.`);
  };
  const [clusters, servers, services] = [numberOf('clusters'), numberOf('servers'), numberOf('services')];
  const lines = monthlyCost({ clusters, servers, services });
  const row = (what: string, quantity: string, dollars: number) =>
    `${what.padEnd(30)}${quantity.padStart(28)}${dollars.toFixed(2).padStart(12)}${(dollars / clusters).toFixed(3).padStart(14)}`;
  return [
    `US dollars per month: ${clusters} clusters with ${servers} API servers and ${services} Services each`,
    `Prices of ${PRICES.region} of ${PRICES.date}, on demand, without free tiers. Check them before you rely on this.`,
    'docs/cost.md has the assumptions, and the cost of transfer.',
    '',
    `${'service'.padEnd(30)}${'quantity'.padStart(28)}${'total'.padStart(12)}${'per cluster'.padStart(14)}`,
    ...lines.map(({ service, quantity, unit, dollars }) => {
      const shown = quantity.toLocaleString('en-US', { maximumFractionDigits: quantity < 100 ? 1 : 0 });
      return row(service, `${shown} ${unit}`, dollars);
    }),
    row('total', '', totalOf(lines)),
    row('with Parameter Store', '', totalOf(withParameterStore(lines))),
  ].join('\n');
}

const SHIPPED: Fleet = { clusters: 100, servers: 3, services: 50 };

export const COST_TABLES: Readonly<Record<string, () => readonly string[]>> = {
  sizes: () => {
    const bills = [1, 100, 1_000].map((clusters) => ({ clusters, lines: monthlyCost({ ...SHIPPED, clusters }) }));
    const row = (what: string, of: (lines: readonly CostLine[]) => readonly CostLine[]) =>
      `| ${what} | ${bills.map(({ clusters, lines }) => (totalOf(of(lines)) / clusters).toFixed(3)).join(' | ')} |`;
    const services = [...new Set(bills[0]?.lines.map(({ service }) => service))];
    return [
      '| | 1 cluster | 100 clusters | 1,000 clusters |',
      '| --- | --- | --- | --- |',
      ...services.map((service) => row(service, (lines) => lines.filter((line) => line.service === service))),
      row('**total**', (lines) => lines),
      row('total with kubeconfigs in Parameter Store', withParameterStore),
    ];
  },
  levers: () => {
    const shipped = monthlyCost(SHIPPED);
    const secrets = shipped.filter(({ service }) => service === 'Secrets Manager');
    const dollars = (lines: readonly CostLine[]) => totalOf(lines) / SHIPPED.clusters;
    const less = (change: Partial<Fleet>) => dollars(shipped) - dollars(monthlyCost({ ...SHIPPED, ...change }));
    const levers: [string, number][] = [
      [
        'kubeconfigs in Parameter Store instead of Secrets Manager',
        dollars(shipped) - dollars(withParameterStore(shipped)),
      ],
      ['tokens of AWS STS instead of kubeconfigs in Secrets Manager', dollars(secrets)],
      [
        '`intervalSeconds.kubernetes-service: 30` with `endpoints.leaseSeconds: 45`: a failed API server is removed later',
        less({ interval: 30 }),
      ],
      ['`intervalSeconds.kubernetes-service: 60` with `endpoints.leaseSeconds: 90`', less({ interval: 60 })],
      ['one API server more', less({ servers: 4 })],
      ['`clustersPerTick=1`, for hostile tenants', less({ clustersPerTick: 1 })],
    ];
    const rows = levers.map(
      ([what, saving]) => `| ${what} | ${saving < 0 ? 'costs ' : ''}$${Math.abs(saving).toFixed(2)} |`,
    );
    return ['| lever | saving |', '| --- | --- |', ...rows];
  },
};

if (import.meta.main) {
  try {
    console.log(costTable(process.argv.slice(2)));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
