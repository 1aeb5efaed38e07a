import { createInterface } from 'node:readline';
import { type RegistrationChange, updateCluster } from '../lib/table/cluster-registration.ts';
import type { RegisteredCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { CliError, configurationError, EXIT, type ExitCode, usageError } from './errors.ts';
import { namesOf, notRegistered, plainCluster, registeredCluster } from './registered.ts';
import { completeAlways, writePrompt } from './terminal.ts';

export interface ClusterChange {
  readonly refusal?: (
    cluster: RegisteredCluster,
    table: KeyValueTable,
  ) => Promise<string | undefined> | string | undefined;
  readonly change: RegistrationChange;
  readonly describe: (before: RegisteredCluster, after: RegisteredCluster | undefined) => string;
  readonly notes?: readonly string[];
}

interface Change {
  readonly name: string;
  readonly before: RegisteredCluster;
  readonly after: RegisteredCluster | undefined;
}

/** Checks all clusters before it changes any. If one is not registered, or `refusal` returns a reason, changes nothing. */
export async function changeClusters(
  cli: Cli,
  names: readonly string[],
  { change, describe, refusal, notes = [] }: ClusterChange,
  { dryRun = false }: { readonly dryRun?: boolean },
): Promise<ExitCode> {
  const clusters = await checkedClusters(cli, [...new Set(names)], refusal);
  const changes = clusters.map((before): Change => ({ name: before.spec.name, before, after: change(before) }));
  const any = changes.some(isChange);
  const progress = await oneByOne(cli, changes, async (one, table) => {
    const isRegistered = dryRun || !isChange(one) || (await updateCluster(table, one.name, change));
    if (!isRegistered) throw await notRegistered(table, one.name);
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
  refusal: ClusterChange['refusal'],
): Promise<readonly RegisteredCluster[]> {
  const { table } = await cli.openTable();
  const clusters: RegisteredCluster[] = [];
  const reasons: string[] = [];
  for (const name of names) {
    const found = await registeredCluster(table, name).catch(reasonOf);
    const reason = typeof found === 'string' ? found : await refusal?.(found, table);
    if (reason !== undefined) reasons.push(reason);
    else if (typeof found !== 'string') clusters.push(found);
  }
  const last = reasons.pop();
  if (last === undefined) return clusters;
  for (const reason of reasons) cli.output.say(reason);
  throw configurationError(names.length === 1 ? last : `${last}\nNothing was changed.`);
}

function reasonOf(error: unknown): string {
  if (error instanceof CliError) return error.message;
  throw error;
}

function plainChange(change: Change) {
  const { name, after } = change;
  const changed = isChange(change);
  return after === undefined ? { name, changed, deleted: true } : { changed, ...plainCluster(after) };
}

function isChange({ before, after }: Change): boolean {
  return before !== after;
}

/** The deadline of one write, longer than the write takes if every attempt times out. */
const ONE_WRITE_MS = 30_000;

export interface Progressed<Item> {
  readonly done: readonly Item[];
  readonly left: readonly Item[];
  /** The change that failed, and its error. If the reply was lost, the change may have been written. */
  readonly failed?: { readonly item: Item; readonly error: unknown };
}

/**
 * Changes one registration after the other. Ctrl-C, the end of `--timeout` and an error stop further changes, but do not
 * interrupt a write, because each write has its own deadline. If the reader closes the output, the changes continue.
 */
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

/**
 * Prints the clusters that were not changed, and throws the error that stopped the changes, such as the end of `--timeout`.
 * @returns `undefined` if all changes were made; the exit code after Ctrl-C
 */
export function concluded(cli: Cli, { left, failed }: Progressed<{ readonly name: string }>): ExitCode | undefined {
  if (left.length > 0) cli.output.say(`Not done: ${namesOf(left.map(({ name }) => name))}. Run the command again.`);
  if (failed !== undefined) throw failed.error;
  if (left.length === 0) return undefined;
  if (cli.ended.aborted) return EXIT.interrupted;
  throw new CliError(EXIT.table, 'Timed out: run the command again with a longer --timeout.');
}

/** Asks for confirmation on a terminal. Any answer other than `y` or `yes` means no. Without a terminal, --yes is required. */
export async function confirmed(cli: Cli, question: string, yes = false): Promise<boolean> {
  if (yes) return true;
  const { in: stdin, err } = cli.output.terminal;
  if (!stdin.isTTY || !err.isTTY) {
    throw usageError(`${question} There is no terminal for the question: use --yes to confirm. Nothing was changed.`);
  }
  writePrompt(err, `${question} [y/N]`);
  const answer = await firstLine(stdin, cli.signal);
  cli.signal.throwIfAborted();
  if (/^\s*y(es)?\s*$/i.test(answer)) return true;
  cli.output.say('Nothing was changed.');
  return false;
}

async function firstLine(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  // The input is not opened as a terminal, so that Ctrl-C remains the signal that ends every command.
  const lines = createInterface({ input, terminal: false, signal });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
