import { Command } from 'commander';
import { listClusters, type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT } from '../errors.ts';
import { plainCluster, registeredCluster, warnOfPauseOfAll } from '../registered.ts';
import { compareNames } from '../spec/names.ts';
import type { Column } from '../text-table.ts';

export function clusterGet(act: Act): Command {
  return new Command('get')
    .description('Show the registrations of clusters, with their specs')
    .argument('[cluster]', 'the name of the cluster; default: all')
    .action(act(get));
}

async function get(cli: Cli, [name]: readonly string[]) {
  const { table, title, clock } = await cli.openTable();
  const nowMs = clock.nowMs();
  if (name !== undefined) {
    const cluster = await registeredCluster(table, name);
    const document = { kind: 'Cluster', ...plainCluster(cluster) };
    cli.output.object(document, () => cli.output.table(columns(nowMs), [cluster]));
    warnOfPauseOfAll(cli, await readPauseOfAll(table), nowMs);
    return EXIT.fine;
  }
  const { clusters, unreadable, pausedAll } = await listClusters(table);
  cli.output.list<RegisteredCluster>({
    kind: 'Cluster',
    items: clusters.toSorted((one, other) => compareNames(one.spec.name, other.spec.name)),
    columns: columns(nowMs),
    plain: plainCluster,
    none: `No clusters are registered in ${title}.`,
  });
  warnOfPauseOfAll(cli, pausedAll, nowMs);
  for (const { name: broken, error } of unreadable) cli.output.say(`Cannot read ${broken}: ${error.message}`);
  return unreadable.length > 0 ? EXIT.findings : EXIT.fine;
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
