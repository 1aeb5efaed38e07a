import { Command } from 'commander';
import type { Hold } from '../../lib/cluster/hold.ts';
import type {
  ApiServerStatus,
  ClusterStatus,
  FindingStatus,
  LoopStatus,
  RangeStatus,
} from '../../lib/status/cluster-status.ts';
import { type StatusJson, statusJson } from '../../lib/status/status-json.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT } from '../errors.ts';
import { withExamples } from '../options.ts';
import type { Plain } from '../output.ts';
import { holdEnd, nameOfKey, TAKEN_UP_BY } from '../ranges/range-words.ts';
import { statusOf, statusOfAll } from '../registered.ts';
import { ago, apiServerColumns, loopColumns, RANGE_COLUMNS } from '../status/status-lines.ts';
import type { Column } from '../text-table.ts';
import { type WatchOptions, watched, withWatchOptions } from '../watch.ts';

/** Rows of one cluster's status, with its name. */
interface Part<Row> {
  readonly kind: string;
  /** As in `kbctl get lease`. */
  readonly singular: string;
  /** As in `kbctl get leases`. */
  readonly plural: string;
  readonly description: string;
  readonly columns: (nowMs: number) => readonly Column<Row>[];
  readonly rows: (status: ClusterStatus) => readonly Row[];
  readonly plainRows: (status: StatusJson) => readonly object[];
  /** For `-o name`. */
  readonly name: (row: Row) => string;
  readonly none: string;
}

type InCluster<Row> = { readonly cluster: string; readonly row: Row; readonly plain: object };

const FINDINGS: Part<FindingStatus> = {
  kind: 'Finding',
  singular: 'finding',
  plural: 'findings',
  description: 'List the findings of the last passes; exit code 1 if there are any',
  columns: (nowMs) => [
    { title: 'FINDING', text: ({ type }) => type },
    { title: 'SERVICE', text: ({ service }) => service ?? '' },
    { title: 'ITEM', text: ({ item }) => item ?? '' },
    { title: 'SEEN', text: ({ seenAtMs }) => ago(seenAtMs, nowMs), yields: true },
    { title: 'LOOP', text: ({ loop }) => loop, wide: true },
    { title: 'MESSAGE', text: ({ message }) => message, shrinks: true },
    { title: 'RESOLUTION', text: ({ mend }) => mend, wide: true },
  ],
  rows: ({ findings }) => findings,
  plainRows: ({ findings }) => findings,
  name: ({ type }) => type,
  none: 'The last passes have no findings.',
};

interface HoldRow {
  readonly range: RangeStatus;
  readonly hold: Hold;
}

const HOLDS: Part<HoldRow> = {
  kind: 'Hold',
  singular: 'hold',
  plural: 'holds',
  description: 'List addresses and ports that are reserved for an owner',
  columns: (nowMs) => [
    { title: 'RANGE', text: ({ range }) => range.range },
    { title: 'ITEMS', text: ({ hold }) => hold.items.join(','), shrinks: true },
    { title: 'OWNER', text: ({ hold }) => hold.owner, shrinks: true },
    { title: 'ENDS', text: ({ hold }) => holdEnd(hold, nowMs) },
    { title: 'TAKEN UP BY', text: ({ hold }) => TAKEN_UP_BY[hold.takenUpBy] },
    { title: 'REQUEST', text: ({ hold }) => hold.requestId ?? '', wide: true },
  ],
  rows: ({ ranges }) => ranges.flatMap((range) => range.holds.map((hold) => ({ range, hold }))),
  plainRows: ({ ranges }) => ranges.flatMap(({ key, range, holds }) => holds.map((hold) => ({ key, range, ...hold }))),
  name: ({ hold }) => hold.items.join(','),
  none: 'There are no holds.',
};

const PARTS = {
  leases: {
    kind: 'Lease',
    singular: 'lease',
    plural: 'leases',
    description: 'List API servers with their leases and last probes',
    columns: apiServerColumns,
    rows: ({ apiServers }: ClusterStatus) => apiServers,
    plainRows: ({ apiServers }: StatusJson) => apiServers,
    name: ({ address, host }: ApiServerStatus) => address ?? host ?? '',
    none: 'There are no leases.',
  },
  ranges: {
    kind: 'Range',
    singular: 'range',
    plural: 'ranges',
    description: 'List the ranges of addresses and ports, and their usage',
    columns: () => RANGE_COLUMNS,
    rows: ({ ranges }: ClusterStatus) => ranges,
    plainRows: ({ ranges }: StatusJson) => ranges,
    name: ({ key }: RangeStatus) => nameOfKey(key),
    none: 'No pass has saved a range yet.',
  },
  runs: {
    kind: 'Run',
    singular: 'run',
    plural: 'runs',
    description: 'List the last recorded pass of each loop; of passes without news, one per minute is recorded',
    columns: loopColumns,
    rows: ({ loops }: ClusterStatus): readonly LoopStatus[] => loops,
    plainRows: ({ loops }: StatusJson) => loops,
    name: ({ loop }: LoopStatus) => loop,
    none: '',
  },
} as const;

/** `kbctl get leases|ranges|runs|findings|holds [CLUSTER]`. */
export function getCommand(act: Act): Command {
  return new Command('get')
    .description('List leases, ranges, runs, findings or holds')
    .addCommand(part(act, PARTS.leases))
    .addCommand(part(act, PARTS.ranges))
    .addCommand(part(act, PARTS.runs))
    .addCommand(part(act, FINDINGS))
    .addCommand(part(act, HOLDS));
}

function part<Row>(
  act: Act,
  { kind, singular, plural, description, columns, rows, plainRows, name: nameOf, none }: Part<Row>,
): Command {
  const print = async (cli: Cli, name: string | undefined) => {
    const nowMs = await cli.nowMs();
    const statuses = await statusesOf(cli, name, nowMs);
    const items = statuses.flatMap((status): InCluster<Row>[] => {
      const plains = plainRows(statusJson(status));
      return rows(status).map((row, index) => ({ cluster: status.name, row, plain: plains[index] ?? {} }));
    });
    cli.output.list<InCluster<Row>>({
      kind,
      items,
      columns: [
        ...(name === undefined ? [{ title: 'CLUSTER', text: ({ cluster }: InCluster<Row>) => cluster }] : []),
        ...columns(nowMs).map((column) => ofRow(column)),
      ],
      plain: ({ cluster, plain }) => ({ cluster, ...(plain as Record<string, Plain>) }),
      name: ({ row }) => nameOf(row),
      none,
    });
    return kind === FINDINGS.kind && items.length > 0 ? EXIT.findings : EXIT.fine;
  };
  const command = new Command(plural)
    .alias(singular)
    .description(description)
    .argument('[cluster]', 'the name of the cluster; default: all');
  const action = act<GlobalOptions & WatchOptions>((cli, [name], options) =>
    watched(cli, options, () => print(cli, name)),
  );
  return withExamples(withWatchOptions(command).action(action), [
    `kbctl get ${plural} prod-eu-1`,
    `kbctl get ${plural} -o json`,
  ]);
}

function ofRow<Row>({ text, style, ...column }: Column<Row>): Column<InCluster<Row>> {
  return {
    ...column,
    text: ({ row }) => text(row),
    ...(style !== undefined && { style: ({ row }: InCluster<Row>) => style(row) }),
  };
}

async function statusesOf(cli: Cli, name: string | undefined, nowMs: number): Promise<readonly ClusterStatus[]> {
  return name === undefined ? (await statusOfAll(cli, nowMs)).clusters : [await statusOf(cli, name, nowMs)];
}
