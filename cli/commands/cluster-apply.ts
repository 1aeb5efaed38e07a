import { Command } from 'commander';
import { listClusters } from '../../lib/table/clusters.ts';
import { type ApplyStep, applySteps, countLine, plainApplied, planApply, planLines } from '../apply/apply-steps.ts';
import { readSpecFiles, type SpecFile } from '../apply/spec-files.ts';
import { concluded } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, usageError } from '../errors.ts';
import { DRY_RUN } from '../options.ts';
import type { Output } from '../output.ts';
import { namesOf } from '../registered.ts';

interface Options extends GlobalOptions {
  readonly filename: readonly string[];
  readonly prune?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const FILES = 'spec files, folders of them (*.yml, *.yaml, *.json), or - for stdin';
const PRUNE = 'remove clusters that are in no file';

export function clusterApply(act: Act): Command {
  return new Command('apply')
    .description('Register clusters from spec files. All files are checked before anything is written')
    .requiredOption('-f, --filename <file...>', FILES)
    .option('--prune', PRUNE)
    .option('--dry-run', DRY_RUN)
    .option('--yes', 'confirm that --prune removes more than half of all clusters')
    .action(act<Options>((cli, _, options) => apply(cli, options)));
}

export function clusterDiff(act: Act): Command {
  return new Command('diff')
    .description('Show what "cluster apply" would change, and nothing else; exit code 1 if anything would change')
    .requiredOption('-f, --filename <file...>', FILES)
    .option('--prune', PRUNE)
    .action(act<Options>((cli, _, options) => preview(cli, options, changeLines)));
}

function changeLines(steps: readonly ApplyStep[], paint: Output['paint']): string[] {
  return [...planLines(steps.filter(isChange), paint), countLine(steps)];
}

/** Prints the plan, and writes nothing. */
async function preview(cli: Cli, options: Options, linesOf: typeof planLines): Promise<ExitCode> {
  const steps = await planned(cli, { ...options, dryRun: true });
  const clusters = plainApplied(steps, new Map());
  cli.output.object({ kind: 'ClusterApply', dryRun: true, clusters }, () => linesOf(steps, cli.output.paint));
  return steps.some(isChange) ? EXIT.findings : EXIT.fine;
}

function isChange({ action }: ApplyStep): boolean {
  return action !== 'keep';
}

async function apply(cli: Cli, options: Options): Promise<ExitCode> {
  const { output } = cli;
  if (options.dryRun) return preview(cli, options, planLines);
  const steps = await planned(cli, options);
  if (!output.isForPrograms) output.lines(planLines(steps, output.paint));
  const { progressed, outcomes } = await applySteps(cli, steps.filter(isChange));
  if (output.isForPrograms) {
    output.document({ kind: 'ClusterApply', dryRun: false, clusters: plainApplied(steps, outcomes) });
  }
  const isRefused = [...outcomes.values()].some(({ outcome }) => outcome === 'refused');
  return concluded(cli, progressed) ?? (isRefused ? EXIT.configuration : EXIT.fine);
}

async function readFiles(cli: Cli, { filename }: Options): Promise<readonly SpecFile[]> {
  const { files, faults } = await readSpecFiles(filename, cli.output.terminal.in);
  if (faults.length > 0) {
    for (const line of faults.flatMap((block) => block.split('\n'))) cli.output.say(line);
    throw configurationError('Nothing was changed: correct the faults above, and try again.');
  }
  if (files.length > 0) return files;
  throw configurationError(
    `No spec in ${filename.join(', ')}: only files that end in .yml, .yaml or .json are read, not those of folders in it. Nothing was changed.`,
  );
}

async function planned(cli: Cli, options: Options): Promise<readonly ApplyStep[]> {
  const files = await readFiles(cli, options);
  const { prune = false, yes, dryRun } = options;
  const { table } = await cli.openTable();
  const list = await listClusters(table);
  const steps = planApply(files, list, prune);
  for (const { name, error } of list.unreadable) {
    if (steps.some((step) => step.name === name)) {
      if (error.code !== 'Corrupt') throw error;
    } else if (prune) {
      cli.output.say(
        `${name} is in no file and is kept: its registration cannot be read. Check it with "kbctl doctor ${name}".`,
      );
    }
  }
  const removed = steps.filter(({ action }) => action === 'remove').map(({ name }) => name);
  const all = list.clusters.length;
  if (removed.length * 2 > all && !yes && !dryRun) {
    throw usageError(
      `--prune would remove ${removed.length} of ${all} registered clusters (${namesOf(removed)}). Use --yes to confirm. Nothing was changed.`,
    );
  }
  return steps;
}
