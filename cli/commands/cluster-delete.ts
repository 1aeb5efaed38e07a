import { Command } from 'commander';
import { unregisterCluster } from '../../lib/table/cluster-registration.ts';
import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import type { ExitCode } from '../errors.ts';
import { withExamples } from '../options.ts';

interface Options extends GlobalOptions {
  readonly dryRun?: boolean;
}

const SUMMARY = 'End the passes of clusters, from their next tick on';
const DESCRIPTION = `${SUMMARY}.

Nothing is changed in the clusters: their endpoints stay as they are. Ranges, leases and the records of passes stay in the table, and are there again when the cluster is registered anew.`;

/** `kbctl cluster delete CLUSTER...`. */
export function clusterDelete(act: Act): Command {
  const command = new Command('delete')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster...>', 'their names; all are looked up before any is deleted')
    .option('--dry-run', 'delete nothing, and say what would be; exit code 1')
    .action(act<Options>(deleteClusters));
  return withExamples(command, ['kbctl cluster delete prod-eu-1', 'kbctl cluster delete test-1 test-2 --dry-run']);
}

async function deleteClusters(cli: Cli, names: readonly string[], options: Options): Promise<ExitCode> {
  const { exitCode } = await changeClusters(
    cli,
    names,
    {
      refusal: ({ spec, owner }) =>
        owner?.packaged === undefined
          ? undefined
          : `${spec.name} is the cluster.yml of the stack ${owner.stack}: take it out there and deploy.`,
      next: () => undefined,
      write: (table, name) => unregisterCluster(table, name),
      words: () => 'deleted; its endpoints, and what is in the table of it, stay as they are',
    },
    options,
  );
  return exitCode;
}
