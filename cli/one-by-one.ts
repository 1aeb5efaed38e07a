import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import type { Cli } from './cli.ts';
import { CliError } from './errors.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { namesOf } from './names-of.ts';
import { whateverIsRead } from './unread-output.ts';

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
