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

/** `docs/cost.md`. */
export function costPage(): string {
  const { natGateway } = networkCost(SHIPPED);
  return `# Cost

- A cluster costs $${withParameters(100)} a month in a fleet of 100, and $${withParameters(1_000)} in one of 1,000, with
  [kubeconfigs in Parameter Store](kubeconfig-secret.md).
- A stack of one cluster costs about $${withParameters(1)}, mostly for metrics, alarms (\`alarms=false\`) and the dashboard (\`dashboard=false\`).
- A NAT gateway costs $${natGateway.toFixed(2)} per zone and for each byte, which can cost more than all else: see [transfer](#transfer).
- The levers are where kubeconfigs are stored and \`intervalSeconds.kubernetes-service\`: see [what drives it](#what-drives-it).
- \`npm run cost -- --clusters 20 --servers 3 --services 400\` computes your fleet; \`--json\` prints JSON.

For a month of 730 hours in ${PRICES.region}, at the public on-demand prices of ${PRICES.date}, without free tiers. Check the prices before you
rely on a figure. Dollars per cluster per month, with ${SHIPPED.servers} API servers and ${SHIPPED.services} Services each:

${sizeTable()}

## What drives it

In a fleet of 100, per cluster per month:

| lever | saving |
| --- | --- |
${leverLines().join('\n')}

Parameter Store serves 40 reads a second without a charge. Processes read each kubeconfig when they start and when it is hours old: together more than 40 a
second from some 2,300 clusters on, and in the minutes after a deployment from some 600 on. A pass whose read is refused fails, and the next one reads again.
Higher throughput, a setting of the account, costs $0.05 for 10,000 reads: with 1,000 clusters ${kubeconfigReadsOf(1_000)}, and with 10,000 ${kubeconfigReadsOf(10_000)}.

A table of your own (\`table=\`) may have provisioned capacity, which is cheaper per unit, but ticks come in bursts every ten seconds; that is not
measured. With \`kbctl heartbeat\` each API server writes, too: $${agentDollars().toFixed(2)} each for up to seven
([ADR 18](adr/0018-one-lease-item-per-cluster.md)).

## Transfer

Bytes between functions and API servers, per cluster per month, not in the totals above. Outside a VPC you pay for what functions send to the
internet; through a NAT gateway for each byte and for the gateway, which all clusters share and the last column leaves out; in the VPC of the
API servers two thirds of the bytes cross zones.

| 3 API servers and | GB | internet | NAT gateway | other zones | all else, and NAT, in a fleet of 100 |
| --- | --- | --- | --- | --- | --- |
${[50, 500, 3_000, 30_000].map(transferRow).join('\n')}

At 3,000 Services, in a fleet of 100:

| what | GB | bytes |
| --- | --- | --- |
| probes | ${probeGb(100)} | every 10 s for each API server: 3.3 KB on a new connection, most of it for the TLS handshake, 0.6 KB on a kept one |
| lists of Services with a cluster IP | 4.4 | 100 of each Service every 3 minutes |
| lists of IPAddresses | 1.9 | 44 of each every 3 minutes |
| other calls of \`kubernetes-service\` | 1.9 | 7 KB every 10 s: three tokens 2.7, requests 0.9, headers of replies 1.5, objects 2.0 |
| all other | 0.9 | |

A process keeps connections of 128 probes, each for at most 25 s ([ADR 4](adr/0004-endpoints-without-a-resident-process.md)). So up to ${Math.floor(128 / 3)} clusters have ${probeGb(1)} GB
of probes, if one process receives their ticks, and 1,000 clusters ${probeGb(1_000)} GB. Up to 500 Services a cluster exchanges 6 GB, and up to 750 it costs $1.00 with all else.
Above that the lists are the most of it, and each byte of them is a compressed Service or address that a pass compares. What is
not done to transfer less, because a pass could then miss an object or a failure:

- A probe with a resumed TLS session: it does not prove the certificate again.
- Objects in protobuf: 1 KB less every 10 s, and unknown fields would be lost when they are written back.
- \`limit=1\`, to compare the version of the list: it is the version of the whole store, which changes with every lease and event of the cluster.
- \`resourceVersion=0\` or a \`resourceVersionMatch\`: as many bytes, from a cache that may be old.
- Only metadata, or a table: the metadata of a Service has no address and is most of its bytes (\`managedFields\`); a table names only the first address.

A list of a cluster in which nothing changed could be replaced by a proof of that: an empty list (89 bytes, with the present version of the store), and a watch since the last
list with \`timeoutSeconds=3\`, which answers with a bookmark of that version after 0.5 to 2.1 s (measured on 1.36.3). It is not done. Its wait costs $0.01 to $0.12
for each cluster, by how many share a function; it saves at most $0.28 at 3,000 Services, if none ever changes, and nothing at 50. Versions of a store that was restored from a backup
repeat, so a pass that frees or allocates would need the list anyway, and each pass would have a second way to its conclusion.

With \`intervalSeconds.kubernetes-service: 30\` a cluster of 50 Services exchanges ${transferOf({ interval: 30, services: 50 }).toFixed(1)} GB, and one of 3,000 ${transferOf({ interval: 30, services: 3_000 }).toFixed(1)} GB;
with \`intervalSeconds.cluster-ip-repair: 540\` as well, a third of the bytes of its lists, and leaked addresses are freed three times later.

Measured on one kube-apiserver 1.36.3 with 3,000 Services with labels and managed fields as Helm sets them, one in 20 headless, 2 % each with node
ports and load balancers. Bytes of TLS connections; CPU times are means of 30 lists in each of two runs on a busy machine.

| list | plain | gzip | CPU of the API server, plain and gzip |
| --- | --- | --- | --- |
| Services with a cluster IP | 3,674 KB | 295 KB | 38 to 46 ms, 46 to 50 ms |
| Services that can have node ports | 165 KB | 16 KB | 5 to 6 ms, 9 to 11 ms |
| IPAddresses | 1,098 KB | 129 KB | 14 to 29 ms, 21 to 29 ms |

Gzip costs the API server up to 20 ms of CPU every three minutes, and saves 91 % of these bytes: $2.86 a month through a NAT gateway. API servers do not
compress a list below 128 KiB.

## How it is computed

**Counted.** A run of the real passes over a table in memory (\`test/tools/cost.test.ts\`) counts calls, capacity units, messages, log bytes and
metric series, and fails if the calculation has others. Clusters are healthy and nothing changes, \`allocator: apiserver\`, a service range of a /16.

**Prices** agree with price lists that were published from 2025-07 (DynamoDB) to 2026-06. Only a bill would show whether an alarm on a
formula is billed for each of its metrics, how often Lambda polls an idle queue, and how DynamoDB counts the bytes of a number.

**Assumed.**

| what | value | source |
| --- | --- | --- |
| CPU time of a pass of \`kubernetes-service\`, three API servers | 10 ms, and 5 ms per invocation | measured over loopback HTTPS and a local table, AMD EPYC, Node 24 |
| CPU time of a pass of another loop | 1.5 ms, and 2.5 to 4.5 ms per invocation | the same |
| CPU time of a repair for 1,000 Services | 10 ms | [performance](performance.md) |
| the same CPU times on Graviton | if they were 1.5 times as long, a cluster would cost $0.03 more: $0.065 of its $0.07 for GB-seconds is CPU time, whatever the memory | computed |
| CPU share of a function | memory / 1,769 MB, at the default 256 and 512 MB | AWS documentation |
| waiting for replies | 50 ms per invocation | estimated |
| life of a function's process | 2 hours; then it reads its kubeconfigs again | estimated |
| a kubeconfig in Parameter Store | at most 4 KB; a larger one costs $0.05 more | AWS documentation |
| polling of an idle queue | five calls every 20 s | AWS documentation |
| log lines of Lambda itself | 300 bytes per invocation | estimated |

**Left out.** Cold starts, storage and backups of the table (some 10 KB per cluster), [transfer](#transfer), your own KMS keys, calls of \`allocate\`
and the admission webhook, kubeconfigs that are read again before a pass frees anything, findings in the log, and VPC endpoints ($7.30 each per zone).
`;
}

function transferOf(change: Partial<Fleet>): number {
  const { out, in: received } = monthlyTransfer({ ...SHIPPED, clusters: 1, ...change });
  return out + received;
}

/** Returns the GB of a cluster's probes in a month. */
function probeGb(clusters: number): string {
  const { out, in: received } = probeBytes({ ...SHIPPED, clusters });
  return ((TICKS_OF_A_MONTH * SHIPPED.servers * (out + received)) / 1e9).toFixed(1);
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
function kubeconfigReadsOf(clusters: number): string {
  const lines = monthlyCost({ ...SHIPPED, clusters });
  const reads = lines.find(({ service, unit }) => service === 'Secrets Manager' && unit === 'reads')?.quantity ?? 0;
  const dollars = (reads * PRICES.parameterRead) / clusters;
  return `${(reads / (HOURS_OF_A_MONTH * 3600)).toFixed(0)} reads a second, $${dollars.toFixed(2)} each`;
}

/** Returns levers of the cost of a cluster in a fleet of 100. */
function leverLines(): string[] {
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
  return levers.map(row);
}

/** Returns the cost of one agent's refreshes in a month, with two reads each. */
function agentDollars(): number {
  return TICKS_OF_A_MONTH * (PRICES.writeUnit + 2 * PRICES.readUnit);
}

/** One column of dollars per cluster for each size. */
function sizeTable(): string {
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
  ].join('\n');
}
