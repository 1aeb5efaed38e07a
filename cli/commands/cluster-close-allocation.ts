import { Command } from 'commander';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { closeAllocation } from '../../lib/exchange/import-ranges.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import type { ExitCode } from '../errors.ts';
import { withExamples } from '../options.ts';

interface Options extends GlobalOptions {
  readonly dryRun?: boolean;
}

const SUMMARY = 'Allocate nothing from the table of clusters until a pass has read their Services';
const DESCRIPTION = `${SUMMARY}.

Use it after a restore of the table, before functions run on it. It closes all ranges of a cluster. The next enforcing pass of each repair loop opens its ranges again.`;

/** `kbctl cluster close-allocation CLUSTER...`. */
export function clusterCloseAllocation(act: Act): Command {
  const command = new Command('close-allocation')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster...>', 'their names; all are looked up before any is changed')
    .option('--dry-run', 'change nothing, and print what would change; exit code 1 when anything would')
    .action(act<Options>(close));
  return withExamples(command, ['kbctl cluster close-allocation prod-eu-1 --table restored-table']);
}

async function close(cli: Cli, names: readonly string[], options: Options): Promise<ExitCode> {
  const { exitCode } = await changeClusters(
    cli,
    names,
    {
      refusal: ({ spec }) =>
        spec.allocator === 'table'
          ? undefined
          : `${spec.name} has "allocator: apiserver": nothing is allocated from this table.`,
      next: (cluster) => {
        const generation = cluster.generation + 2;
        return { ...cluster, generation, rangesGeneration: generation };
      },
      write: closeOne,
      words: (_, after) => `closed until a pass of generation ${after?.generation} has saved its ranges`,
    },
    options,
  );
  return exitCode;
}

async function closeOne(table: KeyValueTable, name: string): Promise<boolean> {
  const cluster = await readCluster(table, name);
  const closed = cluster && (await closeAllocation(table, cluster));
  if (closed instanceof ExchangeError) throw closed;
  return closed !== undefined;
}
