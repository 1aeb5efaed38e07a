import { createInterface } from 'node:readline';
import type { RegisteredCluster } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { CliError, configurationError, EXIT, type ExitCode, usageError } from './errors.ts';
import type { Plain } from './output.ts';
import { namesOf, notRegistered, plainCluster, registeredCluster } from './registered.ts';
import { whateverIsRead, writePrompt } from './terminal.ts';

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

/** Longer than a write takes whose every attempt hangs. */
const ONE_WRITE_MS = 30_000;

/** How far a change of several registrations came. */
export interface Progressed<Item> {
  readonly done: readonly Item[];
  /** Not begun. */
  readonly left: readonly Item[];
  /** The one that failed, and why: it may have been written all the same where a reply was lost. */
  readonly failed?: { readonly item: Item; readonly error: unknown };
}

/**
 * Changes one registration after the other. At Ctrl-C, at the end of `--timeout` and at an error it ends, but no write is
 * cut off: each has time of its own. That nobody reads the output any more is no reason to end.
 */
export function oneByOne<Item>(
  cli: Cli,
  items: readonly Item[],
  nameOf: (item: Item) => string,
  work: (item: Item, table: KeyValueTable) => Promise<void>,
): Promise<Progressed<Item>> {
  return whateverIsRead(() => inTurn(cli, items, nameOf, work));
}

async function inTurn<Item>(
  cli: Cli,
  items: readonly Item[],
  nameOf: (item: Item) => string,
  work: (item: Item, table: KeyValueTable) => Promise<void>,
): Promise<Progressed<Item>> {
  const { tableUntil } = await cli.openTable();
  let current = '';
  const tell = () => cli.output.say(`Ending after ${current}; Ctrl-C once more ends at once.`);
  cli.ended.addEventListener('abort', tell);
  try {
    for (const [index, item] of items.entries()) {
      if (cli.signal.aborted) return { done: items.slice(0, index), left: items.slice(index) };
      current = nameOf(item);
      try {
        await work(item, tableUntil(AbortSignal.timeout(ONE_WRITE_MS)));
      } catch (error) {
        return { done: items.slice(0, index), left: items.slice(index + 1), failed: { item, error } };
      }
    }
    return { done: items, left: [] };
  } finally {
    cli.ended.removeEventListener('abort', tell);
  }
}

/**
 * Says what was not done, if anything.
 * @returns the exit code of a command that ended early; `undefined` when all was done.
 * @throws the error that ended it.
 */
export function concluded<Item>(
  cli: Cli,
  { left, failed }: Progressed<Item>,
  nameOf: (item: Item) => string,
): ExitCode | undefined {
  if (left.length > 0) cli.output.say(`Not done: ${namesOf(left.map(nameOf))}. The command can simply be run again.`);
  if (failed !== undefined) throw failed.error;
  if (left.length === 0) return undefined;
  if (cli.ended.aborted) return EXIT.interrupted;
  throw new CliError(EXIT.table, 'The time of --timeout was over: run it again with more.');
}

export interface Confirming {
  /** Said beforehand. */
  readonly yes?: boolean;
}

/**
 * Asks on a terminal; anything but yes is no. Elsewhere nobody can be asked, so that it has to be said beforehand.
 * @throws CliError where that was not done.
 */
export async function confirmed(cli: Cli, question: string, { yes = false }: Confirming): Promise<boolean> {
  if (yes) return true;
  const { in: stdin, err } = cli.output.terminal;
  if (!stdin.isTTY || !err.isTTY) {
    throw usageError(`${question} Where nobody can be asked, say so with --yes. Nothing was changed.`);
  }
  writePrompt(err, `${question} [y/N]`);
  const answer = await firstLine(stdin, cli.signal);
  cli.signal.throwIfAborted();
  if (/^\s*y(es)?\s*$/i.test(answer)) return true;
  cli.output.say('Nothing was changed.');
  return false;
}

/** Empty when the input ends before. */
async function firstLine(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  // Not as a terminal: Ctrl-C stays the signal that ends every command.
  const lines = createInterface({ input, terminal: false, signal });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
