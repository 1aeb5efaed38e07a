import { setTimeout as sleep } from 'node:timers/promises';
import { anyPartOf, doubledMs } from '../util/back-off.ts';
import { type Item, type KeyValueTable, type NewItem, TableError, type WriteResult } from './key-value-table.ts';
import { sameValue } from './stored-item.ts';

type Content = Omit<NewItem, 'cluster' | 'key'>;

/** The content to write, if any, and the result for the caller. `withheld` replaces `result` if the write is withheld. */
export type Change<Result> =
  | { readonly write: Content; readonly result: Result; readonly withheld?: Result }
  | { readonly keep: Result };

export interface UpdateOptions {
  /** The maximum number of attempts. Default: 8. */
  readonly attempts?: number;
  /** Waits after a lost attempt. The first attempt is number 0. Default: a random part of 20 ms, doubled each time up to 500 ms. */
  readonly wait?: (attempt: number) => Promise<void>;
  /** True if the change is idempotent. Such a change is repeated even if the outcome of a write is unclear. */
  readonly isRepeatable?: boolean;
  /** The item that the caller has just read. The first attempt replaces it, and the second attempt begins without a wait. */
  readonly recent?: { readonly item: Item | undefined } | undefined;
}

const FIRST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 500;

type Written<Decision> =
  | (Extract<WriteResult, { readonly outcome: 'won' }> & { readonly decision: Decision })
  | { readonly outcome: 'kept'; readonly decision: Decision }
  | { readonly outcome: 'lost' | 'unclear' };

/**
 * Reads an item, and writes what `decide` returns for it. Reads and decides again if another writer changed the item
 * before the write. A write with an unclear outcome is repeated only if the change is repeatable, because the
 * first write may have happened, and another writer may have changed the item since.
 * @param decide runs in every attempt. If it returns no `write` for an item read from the table, the item stays unchanged. If it
 *   returns no `write` for `UpdateOptions.recent`, the item is read, and `decide` runs again.
 */
export async function writeUntilWon<Decision extends { readonly write?: Content | undefined }>(
  table: KeyValueTable,
  cluster: string,
  key: string,
  decide: (current: Item | undefined) => Decision,
  { attempts = 8, wait = jitteredWait, isRepeatable = false, recent }: UpdateOptions,
): Promise<Written<Decision>> {
  const firstRead = recent === undefined ? 0 : 1;
  let known = recent;
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > firstRead) {
      await wait(attempt - firstRead - 1);
      // The item that the table returned with its last refusal may have changed meanwhile.
      known = undefined;
    }
    const { item: current } = known ?? { item: await table.get(cluster, key) };
    const decision = decide(current);
    const result = decision.write && (await table.put({ ...decision.write, cluster, key }, current));
    if (result === undefined && attempt >= firstRead) return { outcome: 'kept', decision };
    if (result?.outcome === 'won') return { ...result, decision };
    if (result?.outcome === 'unclear' && !isRepeatable) return result;
    known = returnedWith(result);
  }
  return { outcome: 'lost' };
}

function returnedWith(result: WriteResult | undefined): UpdateOptions['recent'] {
  return result?.outcome === 'lost' && result.current !== undefined ? { item: result.current } : undefined;
}

/**
 * Reads an item, changes it, and writes it if no other writer changed it meanwhile. Otherwise starts again, a limited number
 * of times (`GuaranteedUpdate` of `staging/src/k8s.io/apiserver/pkg/storage/interfaces.go`). A change without an effect is
 * not written. `change` runs in every attempt and must have no side effects.
 *
 *     // Adds one to a counter, whatever other writers do, and returns the sum.
 *     await guaranteedUpdate(table, 'prod', 'counter', (current) => {
 *       const sum = Number(current?.value ?? 0) + 1;
 *       return { write: { schema: 1, value: sum }, result: sum };
 *     });
 *
 * @throws TableError `Contended` if every attempt lost, or the outcome of an attempt is unclear.
 */
export async function guaranteedUpdate<Result>(
  table: KeyValueTable,
  cluster: string,
  key: string,
  change: (current: Item | undefined) => Change<Result>,
  options: UpdateOptions = {},
): Promise<Result> {
  const decide = (current: Item | undefined): { write?: Content; result: Result; withheld?: Result } => {
    const changed = change(current);
    if ('keep' in changed) return { result: changed.keep };
    const isSame = current !== undefined && changesNothing(changed.write, current);
    return isSame ? { result: changed.result } : changed;
  };
  const written = await writeUntilWon(table, cluster, key, decide, options);
  if (!('decision' in written)) throw contended(cluster, key, written.outcome);
  const { result, withheld = result } = written.decision;
  return 'withheld' in written ? withheld : result;
}

export function changesNothing(content: Content, current: Item): boolean {
  return (
    content.schema === current.schema &&
    content.expiresAtMs === current.expiresAtMs &&
    sameValue(content.value, current.value)
  );
}

function contended(cluster: string, key: string, outcome: string): TableError {
  const what =
    outcome === 'unclear'
      ? `The reply to a change of ${cluster}/${key} was lost and other writers changed it since: it may or may not have happened`
      : `Other writers changed ${cluster}/${key} before each attempt to change it`;
  return new TableError('Contended', `${what}; the next pass reads it again.`);
}

async function jitteredWait(attempt: number): Promise<void> {
  await sleep(anyPartOf(doubledMs(FIRST_WAIT_MS, attempt, LONGEST_WAIT_MS), Math.random));
}
