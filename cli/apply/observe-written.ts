import { eachOf } from '../../lib/cluster/each-of.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode, worst } from '../errors.ts';
import type { ConnectionOptions } from '../options.ts';
import { passEnvironment } from '../pass-environment.ts';
import { namesOf } from '../registered.ts';
import type { Observed } from './observed.ts';
import { exitCodeOfObserved, observedLines } from './observed-report.ts';
import { observeOnce } from './observing-pass.ts';
import { nameOf, type Step } from './plan.ts';
import type { Outcome } from './write-steps.ts';

/** Clusters at a time. */
const AT_ONCE = 8;

interface Target {
  readonly cluster: RegisteredCluster;
  readonly folder: string;
}

/** One observing pass of each loop for what was written, told as each cluster is done. */
export async function observeWritten(
  cli: Cli,
  steps: readonly Step[],
  outcomes: ReadonlyMap<string, Outcome>,
  options: ConnectionOptions,
): Promise<{ readonly observed: ReadonlyMap<string, readonly Observed[]>; readonly exitCode: ExitCode }> {
  const targets = steps.flatMap((step): Target[] => {
    const outcome = outcomes.get(nameOf(step));
    if (step.action === 'remove' || outcome?.outcome !== 'written') return [];
    return [{ cluster: outcome.cluster, folder: step.file.folder }];
  });
  const observed = await observeAll(cli, targets, options);
  const left = targets.filter(({ cluster }) => !observed.has(cluster.spec.name));
  if (left.length > 0) {
    const names = namesOf(left.map(({ cluster }) => cluster.spec.name));
    cli.output.say(`Written, but not looked at: ${names}. "kbctl status" tells what the passes of the functions find.`);
  }
  const unseen = left.length > 0 ? [EXIT.apiServer] : [];
  const exitCode = worst([...observed.values()].map(exitCodeOfObserved).concat(unseen));
  tellWhatStands(cli, targets, observed, exitCode);
  return { observed, exitCode: cli.ended.aborted ? EXIT.interrupted : exitCode };
}

async function observeAll(
  cli: Cli,
  targets: readonly Target[],
  options: ConnectionOptions,
): Promise<ReadonlyMap<string, readonly Observed[]>> {
  if (targets.length === 0) return new Map();
  const folders = new Map(targets.map(({ cluster, folder }) => [cluster.spec.name, folder]));
  const { environment, close } = await passEnvironment(cli, await cli.openTable(), {
    ...options,
    folderOf: ({ name }) => folders.get(name) ?? '.',
  });
  const all = new Map<string, readonly Observed[]>();
  const progress = cli.progress('observing');
  try {
    await eachOf(targets, AT_ONCE, async ({ cluster }) => {
      const { name } = cluster.spec;
      if (cli.signal.aborted) return;
      progress.tell(`observing: ${all.size} of ${targets.length} clusters are done`);
      const observed = await observeOnce(environment, cluster);
      // What Ctrl-C cut off says nothing about the cluster.
      if (cli.ended.aborted) return;
      all.set(name, observed);
      if (!cli.output.isForPrograms) cli.output.lines(observedLines(name, observed, cli.output.paint));
    });
    return all;
  } finally {
    progress.end();
    await close();
  }
}

/** A pass that failed from here may go well from where the functions are, and the other way around. */
function tellWhatStands(
  cli: Cli,
  targets: readonly Target[],
  observed: ReadonlyMap<string, readonly Observed[]>,
  exitCode: ExitCode,
): void {
  if (exitCode < EXIT.configuration) return;
  cli.output.say(
    `What was written stands: ${cli.options.table === undefined ? '"kbctl run" runs its' : 'the functions run their'} own passes, by their own way to the API servers.`,
  );
  const failed = targets.filter(
    ({ cluster }) => exitCodeOfObserved(observed.get(cluster.spec.name) ?? []) > EXIT.findings,
  );
  if (failed.some(({ cluster: { spec } }) => 'file' in spec.kubeconfig)) {
    cli.output.say(
      'A kubeconfig file is looked for here beside its spec, and by the functions in their package: name another way for this pass with --kubeconfig FILE.',
    );
  }
}
