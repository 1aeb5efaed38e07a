import { Argument, Command } from 'commander';
import { LOOPS, type Mode } from '../../lib/spec/cluster-spec.ts';
import { unregistered, withAllocationClosed, withMode, withOwner } from '../../lib/table/cluster-registration.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { listRunRecords } from '../../lib/table/run-records.ts';
import { type ClusterChange, changeClusters } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, type ExitCode, usageError } from '../errors.ts';
import { DRY_RUN } from '../options.ts';

interface Options extends GlobalOptions {
  readonly dryRun?: boolean;
}

const NAMES = 'the names of clusters; all are checked before any is changed';

const MODES = ['observe', 'enforce'] as const satisfies readonly Mode[];

const MODE_NOTES: Readonly<Record<Mode, readonly string[]>> = {
  enforce: [
    'Passes write from the next tick on. Leak strikes start at zero: the first address is freed after three passes at the earliest.',
    'With allocator: table, nothing can be allocated until a pass has saved the ranges.',
  ],
  observe: [
    'From the next tick on passes only report what they would write. Endpoints stay unchanged, even if an API server fails.',
  ],
};

interface SetModeOptions extends Options {
  readonly force?: boolean;
}

export function clusterSetMode(act: Act): Command {
  return new Command('set-mode')
    .description('Set whether passes write (enforce) or only report what they would write (observe)')
    .addArgument(new Argument('<mode>', 'the mode').choices(MODES))
    .argument('<cluster...>', NAMES)
    .option('--force', 'enforce without a successful last pass of every loop')
    .option('--dry-run', DRY_RUN)
    .action(act<SetModeOptions>((cli, [mode, ...names], options) => setMode(cli, mode as Mode, names, options)));
}

function setMode(cli: Cli, mode: Mode, names: readonly string[], options: SetModeOptions): Promise<ExitCode> {
  const change: ClusterChange = {
    check: (cluster, table) => checkMode(cluster, table, mode, options),
    change: withMode(mode),
    describe: (before, after) =>
      before === after
        ? `mode is already ${mode}`
        : `mode ${before.spec.mode} -> ${mode}, generation ${after?.generation}`,
    notes: [
      ...MODE_NOTES[mode],
      `Set mode: ${mode} in the spec files too, or the next "kbctl cluster apply" reverts it.`,
    ],
  };
  return changeClusters(cli, names, change, options);
}

async function checkMode(
  { spec: { name, mode: current } }: RegisteredCluster,
  table: KeyValueTable,
  mode: Mode,
  { force }: SetModeOptions,
): Promise<void> {
  if (current === mode || mode === 'observe' || force) return;
  const records = (await listRunRecords(table, name)) ?? {};
  const missing = LOOPS.flatMap((loop) => {
    const record = records[loop];
    if (record?.outcome === 'succeeded') return [];
    const { code, message } = record?.error ?? {};
    return [{ loop, reason: record === undefined ? 'has not run' : `failed (${code}: ${message})` }];
  });
  const [first] = missing;
  if (first === undefined) return;
  const reasons = missing.map(({ loop, reason }) => `${loop} ${reason}`).join('; ');
  throw configurationError(
    `${name}: every loop must succeed in observe first: ${reasons}. Check with "kbctl doctor ${name}", then wait for the passes or run "kbctl run-once ${first.loop} ${name}"; --force skips this check.`,
  );
}

interface TakeOverOptions extends Options {
  readonly stack: string;
}

export function clusterTakeOver(act: Act): Command {
  return new Command('take-over')
    .description(
      `Make a stack the owner of clusters: its passes write from its next tick on.\n\nA cluster belongs to the stack whose passes ran first. Every other stack with the same table, and the former owner, only observes it.`,
    )
    .argument('<cluster...>', NAMES)
    .requiredOption('--stack <name>', 'the new owner, such as kube-bootstrap-controller-prod')
    .option('--dry-run', DRY_RUN)
    .action(act<TakeOverOptions>(takeOver));
}

async function takeOver(cli: Cli, names: readonly string[], options: TakeOverOptions): Promise<ExitCode> {
  const { stack } = options;
  // CloudFormation accepts only such stack names.
  if (!/^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(stack)) {
    throw usageError(
      `--stack ${stack} is not a stack name: use letters, digits and hyphens, such as kube-bootstrap-controller-prod.`,
    );
  }
  const describe = (before: RegisteredCluster, after: RegisteredCluster | undefined) => {
    if (before === after) return `already owned by ${stack}`;
    return `owned by ${stack}${before.owner === undefined ? '' : `, formerly by ${before.owner.stack}`}`;
  };
  return changeClusters(cli, names, { change: withOwner(stack), describe }, options);
}

export function clusterCloseAllocation(act: Act): Command {
  return new Command('close-allocation')
    .description(
      `Allocate nothing from the table of clusters until a pass has read their Services.\n\nUse it after a restore of the table, before functions run on it. It closes all ranges of a cluster. The next enforcing pass of each repair loop opens its ranges again.`,
    )
    .argument('<cluster...>', NAMES)
    .option('--dry-run', DRY_RUN)
    .action(act<Options>((cli, names, options) => changeClusters(cli, names, CLOSE_ALLOCATION, options)));
}

const CLOSE_ALLOCATION: ClusterChange = {
  check: ({ spec }) => {
    if (spec.allocator === 'table') return;
    throw configurationError(`${spec.name} has "allocator: apiserver": nothing is allocated from this table.`);
  },
  change: withAllocationClosed,
  describe: (_, after) => `closed until a pass of generation ${after?.generation} has saved its ranges`,
};

export function clusterDelete(act: Act): Command {
  return new Command('delete')
    .description(
      `Unregister clusters: their passes end with the next tick.\n\nNothing is changed in the clusters: endpoints stay unchanged. Ranges, leases and run records stay in the table, and are used again if the cluster is registered again.`,
    )
    .argument('<cluster...>', NAMES)
    .option('--dry-run', DRY_RUN)
    .action(act<Options>(deleteClusters));
}

async function deleteClusters(cli: Cli, names: readonly string[], options: Options): Promise<ExitCode> {
  const { running } = await cli.openTable();
  const describe = ({ spec: { name } }: RegisteredCluster) => {
    const run = name === running?.cluster ? `, and its local run (process ${running.pid}) ends` : '';
    return `deleted; its endpoints and its items in the table stay unchanged${run}`;
  };
  return changeClusters(cli, names, { change: unregistered, describe }, options);
}
