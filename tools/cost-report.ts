import { parseArgs } from 'node:util';
import {
  type CostLine,
  type Fleet,
  HOURS_OF_A_MONTH,
  monthlyCost,
  PRICES,
  totalOf,
  withParameterStore,
} from './cost-calculation.ts';
import { monthlyTransfer, networkCost, probeBytes } from './cost-transfer.ts';
import { withFigures, withTables } from './page-tables.ts';

const LIMITS = {
  clusters: { least: 1, most: 10_000, standard: 100, what: 'Clusters of the stack' },
  servers: { least: 1, most: 32, standard: 3, what: 'API servers of each cluster' },
  services: { least: 0, most: 65_000, standard: 50, what: 'Services of each cluster' },
} as const;
const NAMES = Object.keys(LIMITS) as (keyof typeof LIMITS)[];

const HELP = `Usage: npm run cost -- [--clusters N] [--servers N] [--services N] [--json]

Print what a stack costs in a month, by service, for healthy clusters and the parameters as shipped.

${NAMES.map((name) => {
  const { least, most, standard, what } = LIMITS[name];
  return `  ${`--${name} N`.padEnd(14)}${what}, ${least} to ${most}. Default: ${standard}`;
}).join('\n')}
  --json        Print JSON
  --help        Print this text

docs/cost.md lists what is assumed.`;

export function costAnswer(args: readonly string[]): { readonly text: string; readonly exitCode: 0 | 2 } {
  const options = { clusters: TEXT, servers: TEXT, services: TEXT, json: SWITCH, help: SWITCH };
  try {
    const { values } = parseArgs({ args: [...args], options });
    if (values.help) return { text: HELP, exitCode: 0 };
    const fleet: Fleet = {
      clusters: numberFrom('clusters', values.clusters),
      servers: numberFrom('servers', values.servers),
      services: numberFrom('services', values.services),
    };
    return { text: values.json ? jsonOf(fleet) : tableOf(fleet), exitCode: 0 };
  } catch (error) {
    if (!(error instanceof RangeError) && !isParseError(error)) throw error;
    return { text: `${error.message}\nRun npm run cost -- --help for the options.`, exitCode: 2 };
  }
}

const TEXT = { type: 'string' } as const;
const SWITCH = { type: 'boolean' } as const;

/** Compared by code, because in a test it is of another realm. */
function isParseError(error: unknown): error is Error {
  return String((error as { readonly code?: unknown }).code).startsWith('ERR_PARSE_ARGS');
}

function numberFrom(name: keyof typeof LIMITS, text: string | undefined): number {
  const { least, most, standard } = LIMITS[name];
  if (text === undefined) return standard;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new RangeError(`--${name} is ${JSON.stringify(text)}: write a whole number from ${least} to ${most}.`);
}

function jsonOf(fleet: Fleet): string {
  const lines = monthlyCost(fleet);
  const total = totalOf(lines);
  const { date, region } = PRICES;
  const answer = {
    ...{ fleet, region, pricesOf: date, currency: 'USD', lines, total, perCluster: total / fleet.clusters },
    totalWithParameterStore: totalOf(withParameterStore(lines)),
    network: networkCost(fleet),
  };
  return JSON.stringify(answer, null, 2);
}

function tableOf(fleet: Fleet): string {
  const lines = monthlyCost(fleet);
  const { clusters, servers, services } = fleet;
  const row = (what: string, quantity: string, dollars: number) =>
    `${what.padEnd(30)}${quantity.padStart(28)}${dollars.toFixed(2).padStart(12)}${(dollars / clusters).toFixed(3).padStart(14)}`;
  return [
    `US dollars per month: ${counted(clusters, 'cluster')} with ${counted(servers, 'API server')} and ${counted(services, 'Service')} each`,
    `Prices of ${PRICES.region} of ${PRICES.date}, on demand, without free tiers. Check them before you rely on this.`,
    '',
    `${'service'.padEnd(30)}${'quantity'.padStart(28)}${'total'.padStart(12)}${'per cluster'.padStart(14)}`,
    ...lines.map(({ service, quantity, unit, dollars }) => row(service, `${quantityText(quantity)} ${unit}`, dollars)),
    row('total', '', totalOf(lines)),
    row('with Parameter Store', '', totalOf(withParameterStore(lines))),
    '',
    ...networkRows(fleet).map(([what, quantity, dollars]) => row(what, quantity, dollars)),
  ].join('\n');
}

/** Only one of these network paths applies. */
function networkRows(fleet: Fleet): (readonly [what: string, quantity: string, dollars: number])[] {
  const { gb, internet, nat, natGateway, crossZone } = networkCost(fleet);
  const quantity = `${quantityText(gb)} GB`;
  return [
    ['transfer: internet', quantity, internet],
    ['transfer: NAT gateway', quantity, nat],
    ['NAT gateway, one zone', `${quantityText(HOURS_OF_A_MONTH)} hours`, natGateway],
    ['transfer: other zones', quantity, crossZone],
  ];
}

function counted(count: number, what: string): string {
  return `${quantityText(count)} ${what}${count === 1 ? '' : 's'}`;
}

function quantityText(quantity: number): string {
  return quantity.toLocaleString('en-US', { maximumFractionDigits: quantity < 100 ? 1 : 0 });
}

const SIZES = [1, 100, 1_000] as const;
const SHIPPED: Fleet = { clusters: 100, servers: 3, services: 50 };

/** Returns `docs/cost.md` with its tables and figures. */
export function withCosts(page: string): string {
  const tables: Readonly<Record<string, () => readonly string[]>> = {
    sizes: sizeTable,
    levers: leverTable,
    transfer: transferTable,
  };
  const { natGateway } = networkCost(SHIPPED);
  const [some, many] = [kubeconfigReads(1_000), kubeconfigReads(10_000)];
  const figures: [string, string][] = [
    ['A cluster costs \\$', withParameters(100)],
    ['in a fleet of 100, and \\$', withParameters(1_000)],
    ['one cluster costs about \\$', withParameters(1)],
    ['A NAT gateway costs \\$', natGateway.toFixed(2)],
    ['on-demand prices of ', PRICES.date],
    ['with 1,000 clusters, ', some.perSecond],
    ['reads a second cost \\$', some.dollars],
    ['and with 10,000, ', many.perSecond],
    ['with 10,000, \\d+ cost \\$', many.dollars],
    ['each API server writes, too: \\$', agentDollars().toFixed(2)],
    ['and probes have ', probeGb(100)],
    [`So up to ${Math.floor(128 / 3)} clusters have `, probeGb(1)],
    ['1,000 clusters have ', probeGb(1_000)],
    ['a cluster of 50 Services exchanges ', transferOf({ interval: 30, services: 50 })],
    ['and one of 3,000 ', transferOf({ interval: 30, services: 3_000 })],
  ];
  return withFigures(
    withTables(page, (name) => tables[name]?.() ?? []),
    figures,
  );
}

function transferOf(change: Partial<Fleet>): string {
  const { out, in: received } = monthlyTransfer({ ...SHIPPED, clusters: 1, ...change });
  return (out + received).toFixed(1);
}

/** Returns the GB of a cluster's probes in a month. */
function probeGb(clusters: number): string {
  const { out, in: received } = probeBytes({ ...SHIPPED, clusters });
  return ((TICKS_OF_A_MONTH * SHIPPED.servers * (out + received)) / 1e9).toFixed(1);
}

function transferTable(): string[] {
  return [
    '| 3 API servers and | GB | internet | NAT gateway | other zones | all else, and NAT, in a fleet of 100 |',
    '| --- | --- | --- | --- | --- | --- |',
    ...[50, 500, 3_000, 30_000].map(transferRow),
  ];
}

function transferRow(services: number): string {
  const fleet = { ...SHIPPED, services };
  const { gb, internet, nat, crossZone } = networkCost(fleet);
  const total = totalOf(withParameterStore(monthlyCost(fleet))) + nat;
  const dollars = [internet, nat, crossZone, total].map((each) => `$${(each / fleet.clusters).toFixed(2)}`);
  return `| ${quantityText(services)} Services | ${[(gb / fleet.clusters).toFixed(1), ...dollars].join(' | ')} |`;
}

function withParameters(clusters: number): string {
  return (totalOf(withParameterStore(monthlyCost({ ...SHIPPED, clusters }))) / clusters).toFixed(2);
}

const TICKS_OF_A_MONTH = HOURS_OF_A_MONTH * 360;

/** Returns the dollars of a cluster with its transfer, without the gateway itself. */
function withNatGateway(clusters: number): string {
  const fleet = { ...SHIPPED, clusters };
  return ((totalOf(withParameterStore(monthlyCost(fleet))) + networkCost(fleet).nat) / clusters).toFixed(3);
}

/** Returns the reads of kubeconfigs of a fleet in a second, and what they cost for each cluster in a month with higher throughput. */
function kubeconfigReads(clusters: number) {
  const lines = monthlyCost({ ...SHIPPED, clusters });
  const reads = lines.find(({ service, unit }) => service === 'Secrets Manager' && unit === 'reads')?.quantity ?? 0;
  const dollars = (reads * PRICES.parameterRead) / clusters;
  return { perSecond: (reads / (HOURS_OF_A_MONTH * 3600)).toFixed(0), dollars: dollars.toFixed(2) };
}

/** Returns levers of the cost of a cluster in a fleet of 100. */
function leverTable(): string[] {
  const shipped = monthlyCost(SHIPPED);
  const stored = withParameterStore(shipped);
  const inFleet = (lines: readonly CostLine[]) => totalOf(lines) / SHIPPED.clusters;
  const less = (change: Partial<Fleet>) => inFleet(shipped) - inFleet(monthlyCost({ ...SHIPPED, ...change }));
  const levers: [string, number][] = [
    ['kubeconfigs in Parameter Store instead of Secrets Manager', inFleet(shipped) - inFleet(stored)],
    [
      'tokens of AWS STS instead of kubeconfigs in Secrets Manager',
      inFleet(shipped.filter(({ service }) => service === 'Secrets Manager')),
    ],
    [
      '`intervalSeconds.kubernetes-service: 30` with `endpoints.leaseSeconds: 45`: a failed API server is removed later',
      less({ interval: 30 }),
    ],
    ['`intervalSeconds.kubernetes-service: 60` with `endpoints.leaseSeconds: 90`', less({ interval: 60 })],
    ['one API server more', less({ servers: 4 })],
    ['`clustersPerTick=1`, for hostile tenants', less({ clustersPerTick: 1 })],
  ];
  const row = ([what, dollars]: [string, number]) =>
    `| ${what} | ${dollars < 0 ? 'costs' : ''} $${Math.abs(dollars).toFixed(2)} |`.replace('  ', ' ');
  return ['| lever | saving |', '| --- | --- |', ...levers.map(row)];
}

/** Returns the cost of one agent's refreshes in a month, with two reads each. */
function agentDollars(): number {
  return TICKS_OF_A_MONTH * (PRICES.writeUnit + 2 * PRICES.readUnit);
}

/** One column of dollars per cluster for each size. */
function sizeTable(): string[] {
  const bills = SIZES.map((clusters) => ({ clusters, lines: monthlyCost({ ...SHIPPED, clusters }) }));
  const row = (what: string, of: (lines: readonly CostLine[]) => readonly CostLine[]) =>
    `| ${what} | ${bills.map(({ clusters, lines }) => (totalOf(of(lines)) / clusters).toFixed(3)).join(' | ')} |`;
  const services = [...new Set(bills[0]?.lines.map(({ service }) => service))];
  return [
    `| | ${SIZES.map((clusters) => counted(clusters, 'cluster')).join(' | ')} |`,
    '| --- | --- | --- | --- |',
    ...services.map((service) => row(service, (lines) => lines.filter((line) => line.service === service))),
    row('**total**', (lines) => lines),
    row('total with kubeconfigs in Parameter Store', withParameterStore),
    `| the same, with transfer through a NAT gateway | ${SIZES.map(withNatGateway).join(' | ')} |`,
  ];
}
