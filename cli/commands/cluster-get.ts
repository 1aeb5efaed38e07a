import { Command } from 'commander';
import { type ListedCluster, listClusters, type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT } from '../errors.ts';
import { plainCluster, registeredCluster, warnOfPauseOfAll } from '../registered.ts';
import { compareNames } from '../spec/names.ts';
import type { Column } from '../text-table.ts';

export function clusterGet(act: Act): Command {
  return new Command('get')
    .description('Show the registrations of clusters, with their specs')
    .argument('[cluster]', 'the name of the cluster; default: all')
    .action(act((cli, [name]) => (name === undefined ? list(cli) : get(cli, name))));
}

async function list(cli: Cli) {
  const { table, title, clock } = await cli.openTable();
  const { clusters, unreadable, pausedAll } = await listClusters(table);
  cli.output.list<ListedCluster>({
    kind: 'Cluster',
    items: clusters.toSorted((one, other) => compareNames(one.spec.name, other.spec.name)),
    columns: columns(clock.nowMs()),
    plain: plainCluster,
    none: `No clusters are registered in ${title}.`,
  });
  warnOfPauseOfAll(cli, pausedAll, clock.nowMs());
  for (const { name, error } of unreadable) cli.output.say(`Cannot read ${name}: ${error.message}`);
  return unreadable.length > 0 ? EXIT.findings : EXIT.fine;
}

async function get(cli: Cli, name: string) {
  const { table, clock } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  cli.output.object({ kind: 'Cluster', ...plainCluster(cluster) }, () =>
    cli.output.table(columns(clock.nowMs()), [cluster]),
  );
  warnOfPauseOfAll(cli, await readPauseOfAll(table), clock.nowMs());
  return EXIT.fine;
}

function columns(nowMs: number): Column<RegisteredCluster>[] {
  return [
    { title: 'NAME', text: ({ spec }) => spec.name },
    { title: 'MODE', text: ({ spec }) => spec.mode },
    { title: 'ALLOCATOR', text: ({ spec }) => spec.allocator },
    { title: 'GENERATION', text: ({ generation }) => String(generation), yields: true },
    { title: 'OWNER', text: ({ owner }) => owner?.stack ?? '<none>', shrinks: true },
    {
      title: 'PAUSED',
      text: ({ paused }) => (paused !== undefined && paused.untilMs > nowMs ? paused.reason : ''),
      shrinks: true,
    },
  ];
}
