import { Command } from 'commander';
import type { Act, Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../errors.ts';
import { type ClaimsNotRead, readHoldsOfCluster } from '../item/claims.ts';
import { type ConnectionOptions, withConnectionOptions } from '../options.ts';
import { fleetStatus, registeredCluster } from '../registered.ts';
import type {
  ApiServerStatus,
  ClusterStatus,
  FindingStatus,
  LoopStatus,
  RangeStatus,
} from '../status/cluster-status.ts';
import {
  apiServerColumns,
  findingColumns,
  type HoldRow,
  holdColumns,
  holdRows,
  loopColumns,
  RANGE_COLUMNS,
} from '../status/columns.ts';
import { allFindingsCommand } from '../status/status-lines.ts';
import type { Column } from '../text-table.ts';
import { type WatchOptions, watched, withWatchOption } from '../watch.ts';

interface Part<Row> {
  readonly kind: string;
  readonly description: string;
  readonly columns: (nowMs: number) => readonly Column<Row>[];
  readonly rows: (status: ClusterStatus) => readonly Row[];
  readonly none: string;
  /** The text for an empty list if the command names no cluster. Default: the text of `none`. */
  readonly noneOfAll?: string;
  /** Reads further rows from the API server of the cluster that the command names. */
  readonly readCluster?: (
    cli: Cli,
    name: string,
    options: ConnectionOptions,
  ) => Promise<readonly Row[] | ClaimsNotRead>;
}

const LEASES: Part<ApiServerStatus> = {
  kind: 'Lease',
  description: 'List API servers with their leases and last probes',
  columns: apiServerColumns,
  rows: ({ apiServers }) => apiServers,
  none: 'There are no leases.',
};

const RANGES: Part<RangeStatus> = {
  kind: 'Range',
  description: 'List the ranges of addresses and ports, and their usage',
  columns: () => RANGE_COLUMNS,
  rows: ({ ranges }) => ranges,
  none: 'No pass has saved a range yet.',
};

const RUNS: Part<LoopStatus> = {
  kind: 'Run',
  description: 'List the last recorded pass of each loop; of passes without news, one per minute is recorded',
  columns: loopColumns,
  rows: ({ loops }) => loops,
  none: 'No clusters are registered.',
};

const FINDINGS: Part<FindingStatus> = {
  kind: 'Finding',
  description: 'List the findings of the last passes; exit code 1 if there are any',
  columns: findingColumns,
  rows: ({ findings }) => findings,
  none: 'The last passes have no findings.',
};

const HOLDS: Part<HoldRow> = {
  kind: 'Hold',
  description:
    'List addresses and ports that are reserved for an owner.\n\nHolds of a cluster with "allocator: apiserver" are in its API server, which is read if you name the cluster.',
  columns: holdColumns,
  rows: holdRows,
  none: 'There are no holds.',
  noneOfAll:
    'There are no holds in the table. Name a cluster with "allocator: apiserver" to read those in its API server.',
  readCluster: async (cli, name, options) => {
    const { spec } = await registeredCluster((await cli.openTable()).table, name);
    if (spec.allocator === 'table') return [];
    const holds = await readHoldsOfCluster(cli, spec, options);
    return 'exitCode' in holds ? holds : holds.map((hold) => ({ range: 'ServiceCIDRs', afterRelease: true, ...hold }));
  },
};

export function getCommand(act: Act): Command {
  return new Command('get')
    .description('List leases, ranges, runs, findings or holds')
    .addCommand(getPart(act, LEASES))
    .addCommand(getPart(act, RANGES))
    .addCommand(getPart(act, RUNS))
    .addCommand(getPart(act, FINDINGS))
    .addCommand(getPart(act, HOLDS));
}

function getPart<Row extends object>(act: Act, part: Part<Row>): Command {
  const one = part.kind.toLowerCase();
  const command = new Command(`${one}s`)
    .alias(one)
    .description(part.description)
    .argument('[cluster]', 'the name of the cluster; default: all')
    .action(
      act<WatchOptions & ConnectionOptions>((cli, [name], options) =>
        watched(cli, options, () => print(cli, name, part, options)),
      ),
    );
  return withWatchOption(part.readCluster === undefined ? command : withConnectionOptions(command));
}

async function print<Row extends object>(
  cli: Cli,
  cluster: string | undefined,
  { kind, columns, rows, none, noneOfAll = none, readCluster }: Part<Row>,
  options: ConnectionOptions,
): Promise<ExitCode> {
  const { clusters: statuses, unreadable, atMs } = await fleetStatus(cli, 'full', cluster);
  const read = cluster === undefined ? [] : ((await readCluster?.(cli, cluster, options)) ?? []);
  if ('exitCode' in read) return read.exitCode;
  const items = statuses.flatMap((status) =>
    [...rows(status), ...read].map((row) => ({ cluster: status.name, ...row })),
  );
  const named = cluster === undefined ? [{ title: 'CLUSTER', text: (row: { cluster: string }) => row.cluster }] : [];
  cli.output.list({
    kind,
    items,
    columns: [...named, ...columns(atMs)],
    none: cluster === undefined ? noneOfAll : none,
    ...cutOf(kind, statuses),
  });
  // An incomplete list must not look like a complete one: "There are no holds" could be wrong.
  const missing = [
    ...unreadable,
    ...statuses.flatMap((status) => status.unreadable.map((message) => ({ name: status.name, message }))),
  ];
  for (const { name, message } of missing) cli.output.say(`Cannot read ${name}: ${message}`);
  return missing.length > 0 || (kind === FINDINGS.kind && items.length > 0) ? EXIT.findings : EXIT.fine;
}

/** If the table lacks some findings (it keeps 20 per loop), returns the total and a command that lists all findings of a loop. */
function cutOf(kind: string, statuses: readonly ClusterStatus[]) {
  const cut = kind === FINDINGS.kind && statuses.find(({ findings, findingTotal }) => findings.length < findingTotal);
  if (!cut) return {};
  return {
    total: statuses.reduce((sum, { findingTotal }) => sum + findingTotal, 0),
    rest: `List all of a loop with "${allFindingsCommand(cut)}".`,
  };
}
