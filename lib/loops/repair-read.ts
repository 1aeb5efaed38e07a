import type { Finding } from '../cluster/finding.ts';
import type { RangeKey } from '../cluster/spec-ranges.ts';
import { RepairError } from '../repair/errors.ts';
import { TableError } from '../table/errors.ts';
import type { Item as TableItem } from '../table/key-value-table.ts';
import { decodeRange, type ReadRange } from '../table/ranges.ts';
import type { PassContext, PassReport } from './pass.ts';
import { type RepairJob, reworded } from './repair-job.ts';

/** What the table holds of one range when the pass begins. */
export interface RangeAtStart {
  readonly key: RangeKey;
  readonly configured: string;
  /** What a save is conditional on. */
  readonly read: ReadRange | undefined;
  /** The item is there and does not parse: it is not to be written over. */
  readonly corrupt?: TableError;
  /** What does not parse, as far as it is an item at all. */
  readonly corruptItem?: TableItem;
  /** This item is to be replaced, being corrupt: what a save is conditional on where nothing was `read`. */
  readonly replaces?: TableItem;
}

/**
 * Reads every range of the job. This comes before the list of Services: what is allocated after it, the save must notice.
 * @throws RepairError `OlderSpec`; and what the table throws, in the original's words.
 */
export async function readRanges<Item>(job: RepairJob<Item>, context: PassContext): Promise<RangeAtStart[]> {
  const ranges = await Promise.all(
    job.ranges.map(async ({ key, configured }) => ({ key, configured, ...(await read(job, context, key)) })),
  );
  for (const range of ranges) refuseNewerSpec(range, context.rangesGeneration);
  return ranges;
}

async function read<Item>(
  { words }: RepairJob<Item>,
  { table, spec }: PassContext,
  key: RangeKey,
): Promise<Pick<RangeAtStart, 'read' | 'corrupt' | 'corruptItem'>> {
  let item: TableItem | undefined;
  try {
    item = await table.get(spec.name, key);
    return { read: item && { stored: decodeRange(item), item } };
  } catch (error) {
    if (!(error instanceof TableError) || error.code !== 'Corrupt') throw reworded(words.cannotRead, error);
    return { read: undefined, corrupt: error, ...(item && { corruptItem: item }) };
  }
}

function refuseNewerSpec({ key, read: saved }: RangeAtStart, generation: number): void {
  if (saved === undefined || saved.stored.generation <= generation) return;
  throw new RepairError(
    'OlderSpec',
    `${key} was saved under generation ${saved.stored.generation} of the cluster spec and this pass knows generation ${generation}: nothing was written, and the next pass reads the spec anew`,
  );
}

/** The report of a pass that ends because of what it read. */
export function corruptSnapshot(error: RepairError, range: RangeAtStart): PassReport {
  const told = new RepairError(
    error.code,
    `${error.message}; ${range.key} is left as it is: put back its last good content, or remove it, and the next pass rebuilds it from the Services`,
    { cause: error.cause },
  );
  const finding: Finding = { type: 'corruptSnapshot', message: told.message };
  return { changes: [], findings: [finding], counts: {}, errors: [told] };
}
