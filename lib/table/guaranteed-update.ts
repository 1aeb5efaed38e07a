import { setTimeout as sleep } from 'node:timers/promises';
import { type Item, type KeyValueTable, type NewItem, TableError } from './key-value-table.ts';
import { sameValue } from './stored-item.ts';

type Content = Omit<NewItem, 'cluster' | 'key'>;

/** The result of a change: a new content or none, and the caller's result, which a withheld write may replace. */
export type Change<Result> =
  | { readonly write: Content; readonly result: Result; readonly withheld?: Result }
  | { readonly keep: Result };

export interface UpdateOptions {
  /** The most attempts. Default: 8. */
  readonly attempts?: number;
  /** Waits after lost attempt number 0, 1, 2 ... Default: a random part of 20 ms, doubling, at most 500 ms. */
  readonly wait?: (attempt: number) => Promise<void>;
  /** The change is idempotent: it is repeated even if the outcome of a write is unclear. */
  readonly isRepeatable?: boolean;
  /**
   * The item as it was read a moment ago. The first attempt replaces it without a read. If another writer was faster,
   * the other attempts begin without a wait.
   */
  readonly recent?: Item | undefined;
}

const FIRST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 500;

/**
 * Reads an item, changes it and writes it unless another writer changed it meanwhile; then starts again, a bounded
 * number of times (`GuaranteedUpdate` of `staging/src/k8s.io/apiserver/pkg/storage/interfaces.go`). A change without an
 * effect is not written. `change` runs again on every attempt and must have no side effects.
 *
 * A write with an unclear outcome is not repeated, unless the change is repeatable: if it happened, another writer may
 * have built on it.
 *
 * @throws TableError `Contended` if every attempt lost, or one is unclear.
 */
export async function guaranteedUpdate<Result>(
  table: KeyValueTable,
  cluster: string,
  key: string,
  change: (current: Item | undefined) => Change<Result>,
  { attempts = 8, wait = jitteredWait, isRepeatable = false, recent }: UpdateOptions = {},
): Promise<Result> {
  let isWithheld = false;
  const wins = async (content: Content, current: Item | undefined): Promise<boolean> => {
    const { outcome, ...written } = await table.put({ ...content, cluster, key }, current);
    if (outcome === 'unclear' && !isRepeatable) throw unclear(cluster, key);
    isWithheld = 'withheld' in written;
    return outcome === 'won';
  };
  if (recent !== undefined) {
    const changed = change(recent);
    // Only a write proves that the item is still the same. A refusal follows from a read.
    if ('write' in changed && (await wins(changed.write, recent))) return resultOf(changed, isWithheld);
  }
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await wait(attempt - 1);
    const current = await table.get(cluster, key);
    const changed = change(current);
    if ('keep' in changed) return changed.keep;
    if (current !== undefined && changesNothing(changed.write, current)) return changed.result;
    if (await wins(changed.write, current)) return resultOf(changed, isWithheld);
  }
  throw new TableError(
    'Contended',
    `Other writers changed ${cluster}/${key} before each of ${attempts} attempts to change it; the next pass reads it again.`,
  );
}

function resultOf<Result>(
  { result, withheld = result }: Extract<Change<Result>, { readonly write: Content }>,
  isWithheld: boolean,
): Result {
  return isWithheld ? withheld : result;
}

/** Returns true if writing `content` over `current` would change nothing. */
export function changesNothing(content: Content, current: Item): boolean {
  return (
    content.schema === current.schema &&
    content.expiresAtMs === current.expiresAtMs &&
    sameValue(content.value, current.value)
  );
}

function unclear(cluster: string, key: string): TableError {
  return new TableError(
    'Contended',
    `The reply to a change of ${cluster}/${key} was lost and other writers changed it since: it may or may not have happened; the next pass reads it again.`,
  );
}

/** Waits a random part of 20 ms after lost attempt number 0, doubling with each, at most 500 ms. */
export async function jitteredWait(attempt: number): Promise<void> {
  await sleep(Math.random() * Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS));
}
