import { Command } from 'commander';
import { type ApplyStep, clusterOfStep, lookUp, planApply } from '../apply/plan.ts';
import { readSpecFiles, type SpecFile } from '../apply/spec-files.ts';
import { type Applied, applySteps, plainApplied, planLines } from '../apply/write-steps.ts';
import { concluded } from '../change-clusters.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { configurationError, EXIT, type ExitCode, usageError, worst } from '../errors.ts';
import { type ConnectionOptions, checkConnectionOptions, withConnectionOptions, withExamples } from '../options.ts';
import { namesOf } from '../registered.ts';

interface Options extends GlobalOptions, ConnectionOptions {
  readonly filename: readonly string[];
  readonly prune?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly pass: boolean;
}

export function clusterApply(act: Act): Command {
  const command = new Command('apply')
    .description(
      `Register clusters from spec files, after printing the changes.\n\nAll files are checked before anything is written. Then one observing pass of each loop runs for every changed cluster: it prints what the loops would do, and writes nothing.`,
    )
    .requiredOption('-f, --filename <file...>', 'spec files, folders of them (*.yml, *.yaml, *.json), or - for stdin')
    .option('--prune', 'remove clusters that are in no file')
    .option('--dry-run', 'print the changes, and write nothing; exit code 1 if there are any')
    .option('--yes', 'confirm that --prune removes more than half of all clusters')
    .option('--no-pass', 'run no observing passes');
  return withExamples(withConnectionOptions(command).action(act<Options>((cli, _, options) => apply(cli, options))), [
    'kbctl cluster apply -f cluster.yml --table kube-bootstrap-controller-prod',
    'kbctl cluster apply -f clusters/ --dry-run',
    'kbctl cluster apply -f clusters/ --prune',
  ]);
}

async function apply(cli: Cli, options: Options): Promise<ExitCode> {
  checkConnectionOptions(options);
  const files = await readFiles(cli, options);
  const steps = await planned(cli, files, options);
  const toWrite = steps.filter(({ action }) => action !== 'keep');
  refuseOneForMany(toWrite, options);
  if (!cli.output.isForPrograms) cli.output.lines(planLines(steps, cli.output.paint));
  if (options.dryRun || toWrite.length === 0) {
    show(cli, steps, options, NOTHING_APPLIED);
    return toWrite.length > 0 ? EXIT.findings : EXIT.fine;
  }
  return write(cli, steps, toWrite, options);
}

/** Writes the clusters and observes them. Prints the document even if it ends early. */
async function write(
  cli: Cli,
  all: readonly ApplyStep[],
  toWrite: readonly ApplyStep[],
  options: Options,
): Promise<ExitCode> {
  const { progressed, outcomes } = await applySteps(cli, toWrite);
  let applied: Applied = { outcomes, passes: new Map() };
  try {
    const ended = concluded(cli, progressed, clusterOfStep);
    if (ended !== undefined) return ended;
    const refused = [...outcomes.values()].some(({ outcome }) => outcome === 'refused');
    const code = refused ? EXIT.configuration : EXIT.fine;
    if (!options.pass) return code;
    const { observeWritten } = await import('../apply/observe-written.ts');
    const { passes, exitCode } = await observeWritten(cli, toWrite, outcomes, options);
    applied = { outcomes, passes };
    return worst([exitCode, code]);
  } finally {
    show(cli, all, options, applied);
  }
}

const NOTHING_APPLIED: Applied = { outcomes: new Map(), passes: new Map() };

function show(cli: Cli, steps: readonly ApplyStep[], { dryRun = false }: Options, applied: Applied): void {
  if (!cli.output.isForPrograms) return;
  cli.output.document({ kind: 'ClusterApply', dryRun, clusters: plainApplied(steps, applied) });
}

async function readFiles(cli: Cli, { filename }: Options): Promise<readonly SpecFile[]> {
  const { files, faults } = await readSpecFiles(filename, cli.output.terminal.in);
  if (faults.length > 0) {
    for (const line of faults.flatMap((block) => block.split('\n'))) cli.output.say(line);
    throw configurationError('Nothing was changed: correct the faults above, and apply again.');
  }
  if (files.length > 0) return files;
  throw configurationError(
    `No spec in ${filename.join(', ')}: only files that end in .yml, .yaml or .json are read, not those of folders in it. Nothing was changed.`,
  );
}

async function planned(cli: Cli, files: readonly SpecFile[], { prune = false, yes, dryRun }: Options) {
  const { known, all, unreadable } = await lookUp(cli, files);
  const steps = planApply(files, known, prune ? all : undefined);
  for (const name of prune ? unreadable : []) {
    cli.output.say(
      `${name} is in no file and is kept: its registration cannot be read. Check it with "kbctl doctor ${name}".`,
    );
  }
  const removed = steps.filter(({ action }) => action === 'remove').map(clusterOfStep);
  if (removed.length * 2 > all.length && !yes && !dryRun) {
    throw usageError(
      `--prune would remove ${removed.length} of ${all.length} registered clusters (${namesOf(removed)}). Use --yes to confirm. Nothing was changed.`,
    );
  }
  return steps;
}

/** A kubeconfig is for one cluster. */
function refuseOneForMany(steps: readonly ApplyStep[], { kubeconfig, pass, dryRun }: Options): void {
  const seen = steps.filter(({ action }) => action !== 'remove');
  if (kubeconfig === undefined || !pass || dryRun || seen.length < 2) return;
  throw usageError(
    `--kubeconfig is for one cluster, and ${seen.length} would be written: apply them one by one, or omit it. Nothing was changed.`,
  );
}
