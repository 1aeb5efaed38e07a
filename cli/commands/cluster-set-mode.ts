import { Argument, Command } from 'commander';
import type { Mode } from '../../lib/cluster/cluster-spec.ts';
import { setClusterMode } from '../../lib/table/cluster-registration.ts';
import { changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import type { ExitCode } from '../errors.ts';
import { withExamples } from '../options.ts';

interface Options extends GlobalOptions {
  readonly dryRun?: boolean;
}

const MODES = ['observe', 'enforce'] as const satisfies readonly Mode[];

const WHAT_FOLLOWS: Readonly<Record<Mode, readonly string[]>> = {
  enforce: [
    'Passes write from the next tick on. Leak strikes start at zero: the first address is freed after three passes at the earliest.',
    'With allocator: table, allocation stays closed until a pass has saved the ranges.',
  ],
  observe: [
    'Passes write nothing to the cluster from the next tick on, and tell what they would: endpoints stay as they are, also when an API server dies.',
  ],
};

/** `kbctl cluster set-mode observe|enforce CLUSTER...`. */
export function clusterSetMode(act: Act): Command {
  const command = new Command('set-mode')
    .description('Say whether the passes of clusters write (enforce) or only tell what they would (observe)')
    .addArgument(new Argument('<mode>', 'what they are to do').choices(MODES))
    .argument('<cluster...>', 'their names; all are looked up before any is changed')
    .option('--dry-run', 'change nothing, and say what would be; exit code 1 when anything would')
    .action(act<Options>((cli, [mode, ...names], options) => setMode(cli, mode as Mode, names, options)));
  return withExamples(command, [
    'kbctl cluster set-mode enforce prod-eu-1',
    'kbctl cluster set-mode observe prod-eu-1 prod-eu-2 --dry-run',
  ]);
}

async function setMode(cli: Cli, mode: Mode, names: readonly string[], options: Options): Promise<ExitCode> {
  const { any, exitCode } = await changeClusters(
    cli,
    names,
    {
      refusal: ({ spec, owner }) =>
        owner?.packaged === undefined || spec.mode === mode
          ? undefined
          : `${spec.name} is the cluster.yml of the stack ${owner.stack}: write mode: ${mode} there and deploy.`,
      next: (cluster) =>
        cluster.spec.mode === mode
          ? cluster
          : { ...cluster, spec: { ...cluster.spec, mode }, generation: cluster.generation + 1 },
      write: async (table, name) => (await setClusterMode(table, name, mode)) !== undefined,
      words: (before, after) =>
        before === after
          ? `mode ${mode} already`
          : `mode ${before.spec.mode} -> ${mode}, generation ${after?.generation}`,
    },
    options,
  );
  if (any && !options.dryRun) {
    for (const line of WHAT_FOLLOWS[mode]) cli.output.say(line);
    cli.output.say(`Write mode: ${mode} into the spec files too, or the next "kbctl cluster apply" sets it back.`);
  }
  return exitCode;
}
