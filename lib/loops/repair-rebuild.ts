import { recordedRange } from '../repair/rebuild.ts';
import type { RepairJob } from './repair-job.ts';
import type { RangeAtStart } from './repair-read.ts';

/** There is nothing to rebuild, and nothing was written. */
class NotCorruptError extends Error {
  override readonly name = 'NotCorruptError';
  readonly code = 'NotCorrupt';
}

/**
 * The ranges as for a pass that replaces what is corrupt by what the Services prove: a corrupt range counts as one that
 * no pass has saved, whose save replaces exactly the item that was read. What is not an item at all stays corrupt.
 * @throws NotCorruptError when all of them can be read.
 */
export function replacingCorrupt<Item>(job: RepairJob<Item>, ranges: readonly RangeAtStart[]): readonly RangeAtStart[] {
  const corrupt = ranges.filter((range) => range.corrupt !== undefined || doesNotRestore(job, range));
  if (corrupt.length === 0) {
    const keys = ranges.map(({ key }) => key).join(' and ');
    throw new NotCorruptError(`${keys} can be read: nothing was rebuilt`);
  }
  return ranges.map((range) => (corrupt.includes(range) ? replaced(range) : range));
}

function doesNotRestore<Item>({ makeRange }: RepairJob<Item>, { configured, read }: RangeAtStart): boolean {
  if (read?.stored.allocator !== 'table') return false;
  return recordedRange(makeRange, configured, read.stored) instanceof Error;
}

function replaced(range: RangeAtStart): RangeAtStart {
  const { key, configured, read, corruptItem } = range;
  const replaces = corruptItem ?? read?.item;
  return replaces === undefined ? range : { key, configured, read: undefined, replaces };
}
