import { Command } from 'commander';
import type { Hold } from '../../lib/cluster/hold.ts';
import type { ClusterStatus, FindingStatus, LoopStatus, RangeStatus } from '../../lib/status/cluster-status.ts';
import { type StatusJson, statusJson } from '../../lib/status/status-json.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT } from '../errors.ts';
import { withExamples } from '../options.ts';
import type { Plain } from '../output.ts';
import { holdEnd, TAKEN_UP_BY } from '../ranges/range-words.ts';
import { statusOf, statusOfAll } from '../registered.ts';
import { ago, apiServerColumns, loopColumns, RANGE_COLUMNS } from '../status/status-lines.ts';
import type { Column } from '../text-table.ts';

/** Rows of one cluster's status, with its name. */
interface Part<Row> {
  readonly kind: string;
  /** As in `kbctl get leases`. */
  readonly plural: string;
  readonly description: string;
  readonly columns: (nowMs: number) => readonly Column<Row>[];
  readonly rows: (status: ClusterStatus) => readonly Row[];
  readonly plainRows: (status: StatusJson) => readonly object[];
  readonly none: string;
}

type InCluster<Row> = { readonly cluster: string; readonly row: Row; readonly plain: object };

const FINDINGS: Part<FindingStatus> = {
  kind: 'Finding',
  plural: 'findings',
  description: 'What the last passes found; exit code 1 when they found something',
  columns: (nowMs) => [
    { title: 'FINDING', text: ({ type }) => type },
    { title: 'SERVICE', text: ({ service }) => service ?? '' },
    { title: 'ITEM', text: ({ item }) => item ?? '' },
    { title: 'SEEN', text: ({ seenAtMs }) => ago(seenAtMs, nowMs), yields: true },
    { title: 'LOOP', text: ({ loop }) => loop, wide: true },
    { title: 'MESSAGE', text: ({ message }) => message, shrinks: true },
    { title: 'MEND', text: ({ mend }) => mend, wide: true },
  ],
  rows: ({ findings }) => findings,
  plainRows: ({ findings }) => findings,
  none: 'The last passes found nothing wrong.',
};

interface HoldRow {
  readonly range: RangeStatus;
  readonly hold: Hold;
}

const HOLDS: Part<HoldRow> = {
  kind: 'Hold',
  plural: 'holds',
  description: 'Addresses and ports that are taken for somebody, without a Service',
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
  none: 'Nothing is held.',
};

const PARTS = {
  leases: {
    kind: 'Lease',
    plural: 'leases',
    description: 'API servers and their leases, with what the last probe said',
    columns: apiServerColumns,
    rows: ({ apiServers }: ClusterStatus) => apiServers,
    plainRows: ({ apiServers }: StatusJson) => apiServers,
    none: 'There are no leases.',
  },
  ranges: {
    kind: 'Range',
    plural: 'ranges',
    description: 'Ranges of addresses and ports, and how full they are',
    columns: () => RANGE_COLUMNS,
    rows: ({ ranges }: ClusterStatus) => ranges,
    plainRows: ({ ranges }: StatusJson) => ranges,
    none: 'No range was saved yet.',
  },
  runs: {
    kind: 'Run',
    plural: 'runs',
    description: 'The last recorded pass of each loop; while nothing happens, one a minute is recorded',
    columns: loopColumns,
    rows: ({ loops }: ClusterStatus): readonly LoopStatus[] => loops,
    plainRows: ({ loops }: StatusJson) => loops,
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

function part<Row>(act: Act, { kind, plural, description, columns, rows, plainRows, none }: Part<Row>): Command {
  const command = new Command(plural)
    .description(description)
    .argument('[cluster]', 'its name; default: all')
    .action(
      act(async (cli, [name]) => {
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
          none,
        });
        return kind === FINDINGS.kind && items.length > 0 ? EXIT.findings : EXIT.fine;
      }),
    );
  return withExamples(command, [`kbctl get ${plural} prod-eu-1`, `kbctl get ${plural} -o json`]);
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
