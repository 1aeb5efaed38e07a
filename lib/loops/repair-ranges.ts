import type { Loop } from '../cluster/cluster-spec.ts';
import { CodedError } from '../cluster/coded-error.ts';
import { type RangeKey, rangesOf } from '../cluster/spec-ranges.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { type MergeRefusal, mergeOntoNewest } from '../range/merge.ts';
import type { StoredRange } from '../range/stored-range.ts';
import { type Comparison, recordedRange } from '../repair/compare-range.ts';
import { type MakeRange, RepairError } from '../repair/walk.ts';
import { TableError } from '../table/errors.ts';
import { guaranteedUpdate } from '../table/guaranteed-update.ts';
import type { Item, KeyValueTable } from '../table/key-value-table.ts';
import { decodeRange, type ReadRange, rangeContent, saveRange } from '../table/ranges.ts';
import type { PassContext } from './pass.ts';

/** The original's errors: how they begin, or whole. */
export interface RepairErrorWords {
  readonly cannotRead: string;
  readonly cannotRestore: (range: string, why: string) => string;
  readonly cannotCreate: (range: string, why: string) => string;
  readonly cannotList: string;
  readonly cannotSave: string;
}

export interface RepairedRanges<RangeItem> {
  readonly loop: Loop;
  readonly makeRange: MakeRange<RangeItem>;
  readonly errors: RepairErrorWords;
}

export interface RangeAtStart {
  readonly key: RangeKey;
  readonly configured: string;
  /** What a save is conditional on. */
  readonly read: ReadRange | undefined;
  /** The item does not parse: it must not be overwritten. */
  readonly corrupt?: TableError;
  /** What does not parse, as far as it is an item at all. */
  readonly corruptItem?: Item;
  /** The corrupt item to replace: what a save is conditional on where nothing was `read`. */
  readonly replaces?: Item;
}

/**
 * Reads every range of a loop.
 * @throws RepairError `OlderSpec`; and what the table throws, in the original's words.
 */
export async function readRanges<RangeItem>(
  { loop, errors }: RepairedRanges<RangeItem>,
  context: PassContext,
): Promise<RangeAtStart[]> {
  const ranges = rangesOf(context.spec).filter((range) => range.loop === loop);
  const read = await Promise.all(
    ranges.map(async ({ key, configured }) => ({ key, configured, ...(await readOne(key, errors, context)) })),
  );
  for (const range of read) refuseNewerSpec(range, context.rangesGeneration);
  return read;
}

async function readOne(
  key: RangeKey,
  errors: RepairErrorWords,
  { table, spec }: PassContext,
): Promise<Pick<RangeAtStart, 'read' | 'corrupt' | 'corruptItem'>> {
  let item: Item | undefined;
  try {
    item = await table.get(spec.name, key);
    return { read: item && { stored: decodeRange(item), item } };
  } catch (error) {
    if (!(error instanceof TableError) || error.code !== 'Corrupt') throw reworded(errors.cannotRead, error);
    return { read: undefined, corrupt: error, ...(item && { corruptItem: item }) };
  }
}

function refuseNewerSpec({ key, read }: RangeAtStart, generation: number): void {
  if (read === undefined || read.stored.generation <= generation) return;
  throw new RepairError(
    'OlderSpec',
    `${key} was saved under generation ${read.stored.generation} of the cluster spec and this pass has generation ${generation}: nothing was written, and the next pass reads the spec again`,
  );
}

/** There is nothing to rebuild, and nothing was written. */
class NotCorruptError extends Error {
  override readonly name = 'NotCorruptError';
  readonly code = 'NotCorrupt';
}

/**
 * Returns the ranges as for a pass that replaces corrupt ones by what the Services prove: a corrupt range counts as one
 * that no pass has saved, whose save replaces exactly the item that was read. What is not an item at all stays corrupt.
 * @throws NotCorruptError when all of them can be read.
 */
export function replaceCorrupt<RangeItem>(
  { makeRange }: RepairedRanges<RangeItem>,
  ranges: readonly RangeAtStart[],
): readonly RangeAtStart[] {
  const isCorrupt = ({ configured, corrupt, read }: RangeAtStart) =>
    corrupt !== undefined ||
    (read?.stored.allocator === 'table' && recordedRange(makeRange, configured, read.stored) instanceof Error);
  if (!ranges.some(isCorrupt)) {
    const keys = ranges.map(({ key }) => key).join(' and ');
    throw new NotCorruptError(`${keys} can be read: nothing was rebuilt`);
  }
  return ranges.map((range) => {
    const { key, configured, read, corruptItem } = range;
    const replaces = corruptItem ?? read?.item;
    return replaces === undefined || !isCorrupt(range) ? range : { key, configured, read: undefined, replaces };
  });
}

/** Saves a usage bitmap. `false`: it was withheld, or another writer was first, whose bitmap is as good. */
export async function saveUsageBitmap(
  table: KeyValueTable,
  cluster: string,
  { key, read, replaces }: RangeAtStart,
  bitmap: StoredRange,
): Promise<boolean> {
  const result = await saveRange(table, cluster, key, bitmap, read?.item ?? replaces);
  return result.outcome === 'won' && result.withheld !== true;
}

/**
 * Saves the decision of a pass over exactly what it read; when another writer wrote since, onto the newest item, as far
 * as it still applies.
 * @throws TableError `Contended` when the outcome is unclear, the item was removed, or others are always first;
 * RepairError `OlderSpec` when the range has become another. Nothing was written then, or the whole decision was.
 */
export async function saveOrMerge(
  table: KeyValueTable,
  cluster: string,
  { key, read, replaces }: Pick<RangeAtStart, 'key' | 'read' | 'replaces'>,
  decided: Comparison,
): Promise<'saved' | 'merged' | 'withheld'> {
  const saved = await saveRange(table, cluster, key, decided.next, read?.item ?? replaces);
  if (saved.outcome === 'won') return saved.withheld ? 'withheld' : 'saved';
  if (saved.outcome === 'unclear') {
    throw contended(
      `the reply to a save of ${key} was lost and others wrote it since: whether it was saved is unknown`,
    );
  }
  if (replaces !== undefined) {
    throw contended(`${key} was written by another writer while the Services were listed and was not replaced`);
  }
  const refusal = await guaranteedUpdate<MergeRefusal | 'removed' | undefined>(table, cluster, key, (newest) => {
    if (newest === undefined) return { keep: 'removed' };
    const merged = mergeOntoNewest(decodeRange(newest), read?.stored, decided);
    return typeof merged === 'string' ? { keep: merged } : { write: rangeContent(merged), result: undefined };
  });
  if (refusal === undefined) return 'merged';
  if (refusal === 'removed') throw contended(`${key} was removed while the Services were listed`);
  throw new RepairError(
    'OlderSpec',
    `${key} was saved for another range or allocator, or under a newer spec, while the Services were listed; nothing was written, and the next pass reads the spec again`,
  );
}

function contended(what: string): TableError {
  return new TableError('Contended', `${what}; the next pass reads it again`);
}

/** Returns the error in the original's words, with its own code. */
export function reworded(beginning: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`${beginning}: ${String(error)}`, { cause: error });
  const message = `${beginning}: ${error.message}`;
  if (error instanceof TableError) return new TableError(error.code, message, { cause: error });
  if (error instanceof ClusterError) return new ClusterError(error.code, message, { cause: error });
  if (error instanceof CodedError) return new CodedError(error.code, message, { cause: error });
  return new Error(message, { cause: error });
}
