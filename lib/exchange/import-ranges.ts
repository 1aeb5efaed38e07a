import type { RangeKey } from '../cluster/spec-ranges.ts';
import {
  CLUSTERS,
  clusterContent,
  decodeRegistration,
  type RegisteredCluster,
  readCluster,
} from '../table/clusters.ts';
import { TableError } from '../table/errors.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { decodeRange, rangeContent, readRange } from '../table/ranges.ts';
import { ExchangeError } from './errors.ts';
import type { ExchangeFile } from './exchange-file.ts';
import { type ImportPlan, importWarnings, type PlacedRange, placeRanges, planImport } from './plan-import.ts';

export interface ImportPreview {
  /** One for each range of the file, in its order. */
  readonly plans: readonly ImportPlan[];
  readonly warnings: readonly string[];
  /** Whether anything is to be written, and allocation so to be closed. */
  readonly changes: boolean;
}

export interface ImportReport extends ImportPreview {
  readonly written: readonly RangeKey[];
  /**
   * Allocation is closed until an enforcing pass of this generation has saved each range. Absent: everything was there
   * already, and nothing was closed.
   */
  readonly opensAtGeneration?: number;
}

/**
 * Shows what {@link importRanges} would do, and writes nothing. Refusals: `NotRegistered`, `NoRecord`, `OtherRange`,
 * `HoldsFull`.
 * @throws TableError of what cannot be read.
 */
export async function previewImport(
  table: KeyValueTable,
  cluster: string,
  file: ExchangeFile,
  nowMs: number,
): Promise<ImportPreview | ExchangeError> {
  const prepared = await prepare(table, cluster, file, nowMs);
  return prepared instanceof ExchangeError ? prepared : prepared.preview;
}

/**
 * Imports a file's ranges: sets what is taken there, clears nothing, and closes allocation until the Services were
 * compared with the result. What would change nothing closes and writes nothing.
 *
 * The order of its writes, and what is left when it ends after one of them:
 *
 * 1. the registration, two generations later (`closeAllocation`). Functions that read it from then on allocate nothing,
 *    because the ranges are older; functions with the former one continue, on unchanged ranges. The next enforcing pass
 *    opens allocation again, and only the import was lost.
 * 2. each range, stamped with the generation between the two. Functions and passes with the former registration find it
 *    newer than theirs and end without writing; those with the new one find it older, and wait for a pass. The stamp is
 *    lower than that of a pass that saved between both writes, which is so reverted.
 *
 * In the other order an interruption would leave a range that is newer than any registration: every pass and allocation
 * would refuse it forever. With a single generation for both, either functions of the former registration would allocate
 * in the imported range, or those of the new one would not wait for a pass.
 *
 * Refusals are those of the preview, and `ChangedMeanwhile` when the cluster's ranges were changed, after some may have
 * been written.
 * @throws TableError; importing is idempotent: import again.
 */
export async function importRanges(
  table: KeyValueTable,
  cluster: string,
  file: ExchangeFile,
  { nowMs, ...options }: UpdateOptions & { readonly nowMs: number },
): Promise<ImportReport | ExchangeError> {
  const prepared = await prepare(table, cluster, file, nowMs);
  if (prepared instanceof ExchangeError) return prepared;
  const { registered, placed, preview } = prepared;
  if (!preview.changes) return { ...preview, written: [] };

  const closing = await orImportAgain(() => closeAllocation(table, registered, options));
  if (closing instanceof ExchangeError) return closing;
  const plans: ImportPlan[] = [];
  for (const range of placed) {
    const plan = await orImportAgain(() => importRange(table, cluster, range, { closing, nowMs, options }));
    if (plan instanceof ExchangeError) return plan;
    plans.push(plan);
  }
  return {
    ...preview,
    plans,
    written: plans.map(({ key }) => key),
    opensAtGeneration: closing.opensAtGeneration,
  };
}

interface Prepared {
  readonly registered: RegisteredCluster;
  readonly placed: readonly PlacedRange[];
  readonly preview: ImportPreview;
}

async function prepare(
  table: KeyValueTable,
  cluster: string,
  file: ExchangeFile,
  nowMs: number,
): Promise<Prepared | ExchangeError> {
  const registered = await readCluster(table, cluster);
  if (registered === undefined) return notRegistered(cluster);
  const placed = placeRanges(file, registered.spec);
  if (placed instanceof ExchangeError) return placed;
  const plans: ImportPlan[] = [];
  for (const { incoming, configured } of placed) {
    const read = await readRange(table, cluster, incoming.key);
    const plan = planImport(read?.stored, incoming, { configured, nowMs });
    if (plan instanceof ExchangeError) return plan;
    plans.push(plan);
  }
  const preview = {
    plans,
    warnings: importWarnings(file, registered, nowMs),
    changes: plans.some(({ changes }) => changes),
  };
  return { registered, placed, preview };
}

interface RangeWrite {
  readonly closing: Closing;
  readonly nowMs: number;
  readonly options: UpdateOptions;
}

/** Writes one range, planned again on what is stored by now. */
function importRange(
  table: KeyValueTable,
  cluster: string,
  { incoming, configured }: PlacedRange,
  { closing, nowMs, options }: RangeWrite,
): Promise<ImportPlan | ExchangeError> {
  return guaranteedUpdate<ImportPlan | ExchangeError>(
    table,
    cluster,
    incoming.key,
    (current): Change<ImportPlan | ExchangeError> => {
      const stored = current && decodeRange(current);
      if (stored !== undefined && stored.generation > closing.opensAtGeneration) {
        return { keep: changedMeanwhile(cluster) };
      }
      const plan = planImport(stored, incoming, { configured, nowMs });
      if (plan instanceof ExchangeError) return { keep: plan };
      const next = { ...plan.next, generation: closing.importGeneration };
      return { write: rangeContent(next), result: plan };
    },
    options,
  );
}

/** After another writer was faster, or with an unclear outcome, importing again is safe. */
async function orImportAgain<Result>(write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof TableError) || error.code !== 'Contended') throw error;
    const message = `The import was not completed: other writers changed the cluster at the same time. Import again; importing is idempotent.`;
    throw new TableError('Contended', message, { cause: error });
  }
}

/** Two generations of a registration, the first of which no registration ever has. */
export interface Closing {
  /** What is imported is stamped with this: older functions find it too new, and younger ones too old. */
  readonly importGeneration: number;
  /** The registration's from now on. A pass of it that saves a range opens that range. */
  readonly opensAtGeneration: number;
}

/**
 * Closes allocation in all ranges of a cluster, until an enforcing pass that has read the registration written here has
 * saved them. Its generations go on by two. Refusals: `ChangedMeanwhile` when ranges or allocator are not those of
 * `cluster` any more, `NotRegistered`.
 * @throws TableError `Contended`: it may or may not have closed, and nothing else has happened.
 */
export function closeAllocation(
  table: KeyValueTable,
  { spec: { name }, rangesGeneration }: RegisteredCluster,
  options?: UpdateOptions,
): Promise<Closing | ExchangeError> {
  return guaranteedUpdate<Closing | ExchangeError>(
    table,
    CLUSTERS,
    name,
    (current): Change<Closing | ExchangeError> => {
      const known = current && decodeRegistration(current).cluster;
      if (known === undefined) return { keep: notRegistered(name) };
      if (known.rangesGeneration !== rangesGeneration) return { keep: changedMeanwhile(name) };
      const opensAtGeneration = known.generation + 2;
      return {
        write: clusterContent({ ...known, generation: opensAtGeneration, rangesGeneration: opensAtGeneration }),
        result: { importGeneration: opensAtGeneration - 1, opensAtGeneration },
      };
    },
    options,
  );
}

export function notRegistered(name: string): ExchangeError {
  return new ExchangeError('NotRegistered', `No cluster ${name} is registered in this table.`);
}

function changedMeanwhile(name: string): ExchangeError {
  return new ExchangeError(
    'ChangedMeanwhile',
    `The ranges of cluster ${name} were changed or imported meanwhile by another writer. Import again; importing is idempotent.`,
  );
}
