import { Command } from 'commander';
import { takeOverCluster } from '../../lib/table/cluster-registration.ts';
import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { type ExitCode, usageError } from '../errors.ts';
import { withExamples } from '../options.ts';

interface Options extends GlobalOptions {
  readonly stack: string;
  readonly dryRun?: boolean;
}

const SUMMARY = 'Make a stack the owner of clusters: from its next tick on its passes write';
const DESCRIPTION = `${SUMMARY}.

A cluster belongs to the stack whose passes came first, and every other stack with the same table only observes it. The one that owned it until now only observes from then on.`;

/** `kbctl cluster take-over CLUSTER... --stack STACK`. */
export function clusterTakeOver(act: Act): Command {
  const command = new Command('take-over')
    .summary(SUMMARY)
    .description(DESCRIPTION)
    .argument('<cluster...>', 'their names; all are looked up before any is changed')
    .requiredOption('--stack <name>', 'who is to own them, such as kube-bootstrap-controller-prod')
    .option('--dry-run', 'change nothing, and say what would be; exit code 1 when anything would')
    .action(act<Options>(takeOver));
  return withExamples(command, ['kbctl cluster take-over prod-eu-1 --stack kube-bootstrap-controller-prod']);
}

async function takeOver(cli: Cli, names: readonly string[], options: Options): Promise<ExitCode> {
  const { stack } = options;
  // As CloudFormation names stacks: another could never come by.
  if (!/^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(stack)) {
    throw usageError(
      `--stack ${stack} is no name of a stack: letters, digits and hyphens, such as kube-bootstrap-controller-prod.`,
    );
  }
  const { exitCode } = await changeClusters(
    cli,
    names,
    {
      next: (cluster) => (cluster.owner?.stack === stack ? cluster : { ...cluster, owner: { stack } }),
      write: (table, name) => takeOverCluster(table, name, stack),
      words: (before, after) => {
        if (before === after) return `owned by ${stack} already`;
        const { owner } = before;
        const from = owner === undefined ? 'nobody' : owner.stack;
        const packaged =
          owner?.packaged === undefined ? '' : '; its spec is a registered one now, and not that of a package';
        return `owned by ${stack}, until now by ${from}${packaged}`;
      },
    },
    options,
  );
  return exitCode;
}
