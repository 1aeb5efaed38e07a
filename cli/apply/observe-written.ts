import { eachOf } from '../../lib/cluster/async.ts';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { LOOP_DEFINITIONS } from '../../local/loop-handlers.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode, exitCodeOf, worst } from '../errors.ts';
import type { ConnectionOptions } from '../options.ts';
import type { Output } from '../output.ts';
import { passEnvironment } from '../pass-environment.ts';
import { isUnreached, passLines, type RanPass } from '../passes/pass-report.ts';
import { runOnce } from '../passes/run-once.ts';
import { namesOf } from '../registered.ts';
import { type ApplyStep, clusterOfStep } from './plan.ts';
import type { StepOutcome } from './write-steps.ts';

/** The number of clusters that are observed at the same time. */
const AT_ONCE = 8;

interface Target {
  readonly cluster: RegisteredCluster;
  readonly folder: string;
}

export type PassesOfClusters = ReadonlyMap<string, readonly RanPass[]>;

/** Runs one observing pass of each loop for every cluster that was written, and prints each cluster when it is done. */
export async function observeWritten(
  cli: Cli,
  steps: readonly ApplyStep[],
  outcomes: ReadonlyMap<string, StepOutcome>,
  options: ConnectionOptions,
): Promise<{ readonly passes: PassesOfClusters; readonly exitCode: ExitCode }> {
  const targets = steps.flatMap((step): Target[] => {
    const outcome = outcomes.get(clusterOfStep(step));
    if (step.action === 'remove' || outcome?.outcome !== 'written') return [];
    return [{ cluster: outcome.cluster, folder: step.file.folder }];
  });
  const passes = await observeAll(cli, targets, options);
  const left = targets.map(({ cluster }) => cluster.spec.name).filter((name) => !passes.has(name));
  if (left.length > 0) {
    cli.output.say(`Written, but not observed: ${namesOf(left)}. "kbctl status" shows what the functions find.`);
  }
  const unseen = left.length > 0 ? [EXIT.apiServer] : [];
  const exitCode = worst([...passes.values()].map(exitCodeOfPasses).concat(unseen));
  if (exitCode >= EXIT.configuration) explainFailure(cli);
  return { passes, exitCode: cli.ended.aborted ? EXIT.interrupted : exitCode };
}

async function observeAll(cli: Cli, targets: readonly Target[], options: ConnectionOptions): Promise<PassesOfClusters> {
  if (targets.length === 0) return new Map();
  const folders = new Map(targets.map(({ cluster, folder }) => [cluster.spec.name, folder]));
  const { environment, close } = await passEnvironment(cli, await cli.openTable(), {
    ...options,
    folderOf: ({ name }) => folders.get(name) ?? '.',
  });
  const all = new Map<string, readonly RanPass[]>();
  const progress = cli.progress('observing');
  try {
    await eachOf(targets, AT_ONCE, async ({ cluster }) => {
      const { name } = cluster.spec;
      if (cli.signal.aborted) return;
      progress.update(`observing: ${all.size} of ${targets.length} clusters are done`);
      const passes = await observeCluster(environment, cluster);
      // A pass that Ctrl-C ended says nothing about the cluster.
      if (cli.ended.aborted) return;
      all.set(name, passes);
      if (!cli.output.isForPrograms) cli.output.lines(linesOf(passes, cli.output.paint));
    });
    return all;
  } finally {
    progress.end();
    await close();
  }
}

/** Runs one pass of each loop that writes nothing. Without its API server, the others would fail too. */
async function observeCluster(environment: Environment, cluster: RegisteredCluster): Promise<RanPass[]> {
  const passes: RanPass[] = [];
  for (const loop of LOOPS) {
    const pass = await runOnce(environment, { cluster, loop: LOOP_DEFINITIONS[loop], dryRun: true });
    passes.push({ cluster: cluster.spec.name, loop, dryRun: true, pass });
    if (isUnreached(pass)) break;
  }
  return passes;
}

function linesOf(passes: readonly RanPass[], paint: Output['paint']): string[] {
  const missing =
    passes.length < LOOPS.length ? ['  the other loops were not run: the API server was not reached'] : [];
  return [...passes.flatMap((pass) => passLines(pass, paint)), ...missing];
}

function exitCodeOfPasses(passes: readonly RanPass[]): ExitCode {
  return worst(passes.flatMap(({ pass }) => pass.errors.map((error) => exitCodeOf(error) ?? EXIT.findings)));
}

/** A pass that failed from here may succeed from where the functions run, and the reverse. */
function explainFailure(cli: Cli): void {
  const runner = cli.options.table === undefined ? '"kbctl run" runs its' : 'the functions run their';
  cli.output.say(
    `The registration is written: ${runner} own passes, over their own connections to the API servers. Here use another kubeconfig with --kubeconfig FILE, or omit these passes with --no-pass.`,
  );
}
