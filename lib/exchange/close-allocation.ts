import { CLUSTERS, clusterContent, decodeRegistration, type RegisteredCluster } from '../table/clusters.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from '../table/guaranteed-update.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { ExchangeError } from './errors.ts';

/** Two generations of a registration, of which nobody has the first. */
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

export function changedMeanwhile(name: string): ExchangeError {
  return new ExchangeError(
    'ChangedMeanwhile',
    `The ranges of cluster ${name} were changed, or imported into, by somebody else in the meantime: import again. Importing again does no harm, it only sets what is missing.`,
  );
}
