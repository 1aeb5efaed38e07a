import { type RegistrationChange, updateCluster } from '../lib/table/cluster-registration.ts';
import type { RegisteredCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { CliError, configurationError, EXIT, type ExitCode } from './errors.ts';
import { namesOf, notRegistered, plainCluster, registeredCluster } from './registered.ts';
import { completeAlways } from './terminal.ts';

export interface ClusterChange {
  /** Throws a CliError if the cluster must not be changed. */
  readonly check?: (cluster: RegisteredCluster, table: KeyValueTable) => Promise<void> | void;
  readonly change: RegistrationChange;
  readonly describe: (before: RegisteredCluster, after: RegisteredCluster | undefined) => string;
  readonly notes?: readonly string[];
}

interface Change {
  readonly name: string;
  readonly changed: boolean;
  readonly before: RegisteredCluster;
  readonly after: RegisteredCluster | undefined;
}

/** First checks all clusters. If one of them is not registered, or is refused by `check`, no cluster is changed. */
export async function changeClusters(
  cli: Cli,
  names: readonly string[],
  { change, describe, check, notes = [] }: ClusterChange,
  { dryRun = false }: { readonly dryRun?: boolean },
): Promise<ExitCode> {
  const clusters = await checkedClusters(cli, [...new Set(names)], check);
  const changes = clusters.map((before): Change => {
    const after = change(before);
    return { name: before.spec.name, changed: after !== before, before, after };
  });
  const any = changes.some(({ changed }) => changed);
  const progress = await oneByOne(cli, changes, async (one, table) => {
    if (!dryRun && one.changed && !(await updateCluster(table, one.name, change)))
      throw await notRegistered(table, one.name);
    const line = `${one.name}: ${describe(one.before, one.after)}${dryRun ? ' (dry run)' : ''}`;
    if (!cli.output.isForPrograms) cli.output.lines([line]);
  });
  if (cli.output.isForPrograms) {
    cli.output.document({ kind: 'ChangedClusterList', dryRun, items: progress.done.map(plainChange) });
  }
  const ended = concluded(cli, progress);
  if (any && !dryRun) for (const note of notes) cli.output.say(note);
  return ended ?? (any && dryRun ? EXIT.findings : EXIT.fine);
}

async function checkedClusters(
  cli: Cli,
  names: readonly string[],
  check: ClusterChange['check'],
): Promise<readonly RegisteredCluster[]> {
  const { table } = await cli.openTable();
  const clusters: RegisteredCluster[] = [];
  const reasons: string[] = [];
  for (const name of names) {
    try {
      const cluster = await registeredCluster(table, name);
      await check?.(cluster, table);
      clusters.push(cluster);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      reasons.push(error.message);
    }
  }
  if (reasons.length === 0) return clusters;
  throw configurationError([...reasons, ...(names.length === 1 ? [] : ['Nothing was changed.'])].join('\n'));
}

function plainChange({ name, changed, after }: Change) {
  return after === undefined ? { name, changed, deleted: true } : { changed, ...plainCluster(after) };
}

/** The deadline of one write, which is longer than a write takes if every attempt times out. */
const ONE_WRITE_MS = 30_000;

export interface Progressed<Item> {
  readonly done: readonly Item[];
  readonly left: readonly Item[];
  /** The change that failed, and its error. If the reply was lost, the change may have been written. */
  readonly failed?: { readonly item: Item; readonly error: unknown };
}

/** Changes one registration after the other. Ctrl-C, `--timeout` and an error stop further changes, but interrupt no write. */
export function oneByOne<Item extends { readonly name: string }>(
  cli: Cli,
  items: readonly Item[],
  write: (item: Item, table: KeyValueTable) => Promise<void>,
): Promise<Progressed<Item>> {
  return completeAlways(async () => {
    const { tableUntil } = await cli.openTable();
    let current = '';
    const onInterrupt = () => cli.output.say(`Ending after ${current}. Press Ctrl-C again to end at once.`);
    cli.ended.addEventListener('abort', onInterrupt);
    try {
      for (const [index, item] of items.entries()) {
        if (cli.signal.aborted) return { done: items.slice(0, index), left: items.slice(index) };
        current = item.name;
        try {
          await write(item, tableUntil(AbortSignal.timeout(ONE_WRITE_MS)));
        } catch (error) {
          return { done: items.slice(0, index), left: items.slice(index + 1), failed: { item, error } };
        }
      }
      return { done: items, left: [] };
    } finally {
      cli.ended.removeEventListener('abort', onInterrupt);
    }
  });
}

/** Prints the clusters that were not changed, and throws the error that stopped the changes. @returns the exit code after Ctrl-C */
export function concluded(cli: Cli, { left, failed }: Progressed<{ readonly name: string }>): ExitCode | undefined {
  if (left.length > 0) cli.output.say(`Not done: ${namesOf(left.map(({ name }) => name))}. Run the command again.`);
  if (failed !== undefined) throw failed.error;
  if (left.length === 0) return undefined;
  if (cli.ended.aborted) return EXIT.interrupted;
  throw new CliError(EXIT.table, 'Timed out: run the command again with a longer --timeout.');
}
