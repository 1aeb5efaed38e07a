import type { RegisteredCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { CliError, configurationError } from './errors.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { concluded, oneByOne } from './one-by-one.ts';
import type { Plain } from './output.ts';
import { plainCluster } from './plain-cluster.ts';
import { notRegistered, registeredCluster } from './registered.ts';

/** What a command does to each of the clusters that it names. */
export interface ClusterChange {
  /** Why it cannot be done to this one. */
  readonly refusal?: (cluster: RegisteredCluster) => string | undefined;
  /** As it will be; the same object when nothing is to change, `undefined` when it will be gone. */
  readonly next: (cluster: RegisteredCluster) => RegisteredCluster | undefined;
  /** @returns whether the cluster was registered. */
  readonly write: (table: KeyValueTable, name: string) => Promise<boolean>;
  /** What it comes to, in a line without the name. */
  readonly words: (before: RegisteredCluster, after: RegisteredCluster | undefined) => string;
}

interface Step {
  readonly before: RegisteredCluster;
  readonly after: RegisteredCluster | undefined;
}

export interface Changed {
  readonly exitCode: ExitCode;
  /** Whether any cluster is, or would be, another than before. */
  readonly any: boolean;
}

/** All are looked at before any is changed: with one that is not there, or that is refused, nothing is done. */
export async function changeClusters(
  cli: Cli,
  names: readonly string[],
  change: ClusterChange,
  { dryRun = false }: { readonly dryRun?: boolean },
): Promise<Changed> {
  const clusters = await checked(cli, [...new Set(names)], change);
  const steps = clusters.map((before): Step => ({ before, after: change.next(before) }));
  const any = steps.some(isChange);
  const tell = ({ before, after }: Step) => {
    const line = `${before.spec.name}: ${change.words(before, after)}${dryRun ? ' (dry run)' : ''}`;
    if (!cli.output.isForPrograms) cli.output.lines([line]);
  };
  if (dryRun) {
    for (const step of steps) tell(step);
    show(cli, steps, dryRun);
    return { any, exitCode: any ? EXIT.findings : EXIT.fine };
  }
  const progressed = await oneByOne(cli, steps, nameOf, async (step, table) => {
    if (isChange(step) && !(await change.write(table, nameOf(step)))) throw await notRegistered(table, nameOf(step));
    tell(step);
  });
  show(cli, progressed.done, dryRun);
  return { any, exitCode: concluded(cli, progressed, nameOf) ?? EXIT.fine };
}

async function checked(
  cli: Cli,
  names: readonly string[],
  { refusal }: ClusterChange,
): Promise<readonly RegisteredCluster[]> {
  const { table } = await cli.openTable();
  const clusters: RegisteredCluster[] = [];
  const wrong: string[] = [];
  for (const name of names) {
    const found = await registeredCluster(table, name).catch(reasonOf);
    const reason = typeof found === 'string' ? found : refusal?.(found);
    if (reason !== undefined) wrong.push(reason);
    else if (typeof found !== 'string') clusters.push(found);
  }
  const last = wrong.pop();
  if (last === undefined) return clusters;
  for (const reason of wrong) cli.output.say(reason);
  throw configurationError(names.length === 1 ? last : `${last}\nNothing was changed.`);
}

/** What the command can go on from, to tell everything that is wrong at once. */
function reasonOf(error: unknown): string {
  if (error instanceof CliError) return error.message;
  throw error;
}

function show(cli: Cli, steps: readonly Step[], dryRun: boolean): void {
  if (cli.output.isForPrograms)
    cli.output.document({ kind: 'ChangedClusterList', dryRun, items: steps.map(plainStep) });
}

function plainStep(step: Step): Plain {
  const changed = isChange(step);
  return step.after === undefined
    ? { name: nameOf(step), changed, deleted: true }
    : { changed, ...plainCluster(step.after) };
}

function isChange({ before, after }: Step): boolean {
  return before !== after;
}

function nameOf({ before }: Step): string {
  return before.spec.name;
}
