import { Command } from 'commander';
import { specJsonSchema } from '../../lib/spec/spec-json-schema.ts';
import { writtenSpec } from '../../lib/spec/written-spec.ts';
import { type ListedCluster, listClusters, type RegisteredCluster, readPauseOfAll } from '../../lib/table/clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, usageError } from '../errors.ts';
import { withExamples } from '../options.ts';
import { NO_STACK_YET, plainCluster, registeredCluster, tellPauseOfAll } from '../registered.ts';
import { yamlOf } from '../terminal.ts';
import type { Column } from '../text-table.ts';

interface Options extends GlobalOptions {
  readonly asFile?: boolean;
}

/** `kbctl cluster list` and `kbctl cluster get [CLUSTER]`. */
export function clusterList(act: Act): Command {
  const command = new Command('list').description('List the clusters that are registered').action(act(list));
  return withExamples(command, [
    'kbctl cluster list --table kube-bootstrap-controller-prod',
    'kbctl cluster list -o json',
  ]);
}

export function clusterGet(act: Act): Command {
  const command = new Command('get')
    .description('Show the registration of a cluster, with its whole spec')
    .argument('[cluster]', 'its name; without it all are listed')
    .option('--as-file', 'its spec alone, as "kbctl cluster apply -f" takes it; what has its default is left out')
    .action(
      act<Options>((cli, [name], { asFile = false }) => {
        if (name !== undefined) return asFile ? printFile(cli, name) : get(cli, name);
        if (asFile) throw usageError('--as-file is of one cluster: name it.');
        return list(cli);
      }),
    );
  return withExamples(command, [
    'kbctl cluster get prod-eu-1',
    'kbctl cluster get prod-eu-1 -o yaml',
    'kbctl cluster get prod-eu-1 --as-file > cluster.yml',
  ]);
}

async function list(cli: Cli) {
  const { table, title, clock } = await cli.openTable();
  const { clusters, unreadable, pausedAll } = await listClusters(table);
  cli.output.list<ListedCluster>({
    kind: 'Cluster',
    items: clusters,
    columns: columns(clock.nowMs()),
    plain: plainCluster,
    none: `No cluster is registered in ${title}.`,
  });
  tellPauseOfAll(cli, pausedAll, clock.nowMs());
  for (const { name, error } of unreadable) cli.output.say(`${name}: ${error.message}`);
  return unreadable.length > 0 ? EXIT.findings : EXIT.fine;
}

async function get(cli: Cli, name: string) {
  const { table, clock } = await cli.openTable();
  const cluster = await registeredCluster(table, name);
  cli.output.object({ kind: 'Cluster', ...plainCluster(cluster) }, () =>
    cli.output.table(columns(clock.nowMs()), [cluster]),
  );
  tellPauseOfAll(cli, await readPauseOfAll(table), clock.nowMs());
  return EXIT.fine;
}

async function printFile({ openTable, output }: Cli, name: string) {
  const { table } = await openTable();
  const written = writtenSpec((await registeredCluster(table, name)).spec);
  const text = output.format === 'json' ? JSON.stringify(written, undefined, 2) : yamlOf(written);
  output.data(`${text.trimEnd()}\n`);
  return EXIT.fine;
}

function columns(nowMs: number): Column<RegisteredCluster>[] {
  return [
    { title: 'NAME', text: ({ spec }) => spec.name },
    { title: 'MODE', text: ({ spec }) => spec.mode },
    { title: 'ALLOCATOR', text: ({ spec }) => spec.allocator },
    { title: 'GENERATION', text: ({ generation }) => String(generation), yields: true },
    { title: 'OWNER', text: ({ owner }) => owner?.stack ?? NO_STACK_YET, shrinks: true },
    {
      title: 'PAUSED',
      text: ({ paused }) => (paused !== undefined && paused.untilMs > nowMs ? paused.reason : ''),
      shrinks: true,
    },
    { title: 'SERVICE RANGES', text: ({ spec }) => spec.serviceClusterIPRanges.join(','), wide: true },
    { title: 'NODE PORTS', text: ({ spec }) => spec.serviceNodePortRange, wide: true },
    { title: 'API SERVERS', text: ({ spec }) => String(spec.apiServers.length), wide: true },
  ];
}

/** `kbctl cluster schema`: needs no table. */
export function clusterSchema(act: Act): Command {
  const command = new Command('schema')
    .description('Print the JSON Schema of a cluster spec, for editors: JSON, or YAML with -o yaml')
    .action(
      act(async ({ output }) => {
        const schema = specJsonSchema();
        output.data(output.format === 'yaml' ? yamlOf(schema) : `${JSON.stringify(schema, undefined, 2)}\n`);
        return EXIT.fine;
      }),
    );
  return withExamples(command, ['kbctl cluster schema > cluster-spec.schema.json']);
}
