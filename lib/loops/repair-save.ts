import type { RangeKey } from '../cluster/spec-ranges.ts';
import type { Comparison } from '../repair/compare.ts';
import { RepairError } from '../repair/errors.ts';
import { type MergeRefusal, mergeOntoNewest } from '../repair/merge.ts';
import { TableError } from '../table/errors.ts';
import { guaranteedUpdate, type UpdateOptions } from '../table/guaranteed-update.ts';
import type { Item, KeyValueTable } from '../table/key-value-table.ts';
import { decodeRange, type ReadRange, rangeContent, saveRange } from '../table/ranges.ts';

/** The range, and what was read of it before the Services were listed. */
export interface SavedOver {
  readonly cluster: string;
  readonly key: RangeKey;
  readonly read: ReadRange | undefined;
  /** What did not parse and is to be replaced, where nothing was `read`. */
  readonly replaces?: Item;
}

/**
 * Saves what the pass decided over exactly what it read. When somebody wrote since, it goes onto the newest instead,
 * as far as it still holds.
 * @throws TableError `Contended` when the outcome is unclear, the item is gone, or others are always first; RepairError
 * `OlderSpec` when the range has become another. Nothing was written then, or what was is the pass's whole decision.
 */
export async function saveOrMerge(
  table: KeyValueTable,
  { cluster, key, read, replaces }: SavedOver,
  decided: Comparison,
  options?: UpdateOptions,
): Promise<'saved' | 'merged'> {
  const { outcome } = await saveRange(table, cluster, key, decided.next, read?.item ?? replaces);
  if (outcome === 'won') return 'saved';
  if (outcome === 'unclear') throw unclear(key);
  if (replaces !== undefined) throw notReplaced(key);

  const refusal = await guaranteedUpdate<MergeRefusal | 'gone' | undefined>(
    table,
    cluster,
    key,
    (newest) => {
      if (newest === undefined) return { keep: 'gone' };
      const merged = mergeOntoNewest(decodeRange(newest), read?.stored, decided);
      return typeof merged === 'string' ? { keep: merged } : { write: rangeContent(merged), result: undefined };
    },
    options,
  );
  if (refusal !== undefined) throw refused(key, refusal);
  return 'merged';
}

function unclear(key: RangeKey): TableError {
  return new TableError(
    'Contended',
    `the reply to a save of ${key} was lost and others wrote it since, so that nobody can tell whether it happened; the next pass reads anew`,
  );
}

function notReplaced(key: RangeKey): TableError {
  const message = `${key} was written by somebody else while the Services were listed and was not replaced; look at it anew`;
  return new TableError('Contended', message);
}

function refused(key: RangeKey, refusal: MergeRefusal | 'gone'): TableError | RepairError {
  switch (refusal) {
    case 'gone':
      return new TableError('Contended', `${key} was removed while the Services were listed; the next pass reads anew`);
    case 'newerSpec':
    case 'otherAllocator':
    case 'otherRange':
      return new RepairError(
        'OlderSpec',
        `${key} was saved for another range or allocator, or under a newer spec, while the Services were listed; nothing was written, and the next pass reads the spec anew`,
      );
  }
}
