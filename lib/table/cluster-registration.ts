import type { ClusterSpec, Mode } from '../cluster/cluster-spec.ts';
import {
  ALL_CLUSTERS,
  CLUSTERS,
  changeRegistered,
  clusterContent,
  decodeRegistration,
  generationOf,
  ownedBy,
  type Pause,
  pauseContent,
  type RegisteredCluster,
  type Registration,
  tombstoneContent,
} from './clusters.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import { type Item, type KeyValueTable, TableError } from './key-value-table.ts';
import { fieldsIn, plainValue, sameValue } from './stored-item.ts';

export interface RegisterOptions extends UpdateOptions {
  /** The generation that the caller read and wants to replace; `none`: the name must not be registered. Default: any. */
  readonly replaces?: number | 'none';
}

/**
 * Registers a spec. If the same spec is already registered, nothing is written; a different spec gets a new generation. If
 * the name was registered earlier, generations continue from its last one: otherwise the ranges of that time would count as
 * newer. A registration that does not parse is replaced.
 * @returns the registered cluster.
 * @throws TableError `ChangedMeanwhile` if the registration is not the one in `replaces`, unless it has the same spec.
 */
export async function registerCluster(
  table: KeyValueTable,
  spec: ClusterSpec,
  { replaces, ...options }: RegisterOptions = {},
): Promise<RegisteredCluster> {
  const lost = await lostRegistration(table, spec.name);
  const change = (current: Item | undefined): Change<RegisteredCluster> => {
    const known = current === undefined ? lost : registrationIn(current);
    const before = known?.cluster;
    if (before !== undefined && sameSpec(before.spec, spec)) return { keep: before };
    refuseOther(spec.name, before, replaces);
    const cluster = successor(known, spec);
    return { write: clusterContent(cluster), result: cluster };
  };
  return guaranteedUpdate(table, CLUSTERS, spec.name, change, options);
}

/**
 * Returns the last generation in which the ranges of a name were saved, if the registration of the name is missing from the
 * table. The next generation must be later: otherwise these ranges would count as newer than the spec.
 */
async function lostRegistration(table: KeyValueTable, name: string): Promise<Registration | undefined> {
  if ((await table.get(CLUSTERS, name)) !== undefined) return undefined;
  const ranges = await table.list(name, 'ranges/');
  const generations = ranges.map(({ value }) => Number(fieldsIn(value)?.['generation']) || 0);
  const generation = Math.max(0, ...generations);
  return generation === 0 ? undefined : { generation };
}

/**
 * Returns the registration with the next generation and another spec. Allocation closes if the ranges or the allocator
 * change, until a pass has saved the ranges. It also closes if the mode changes from `observe` to `enforce`, because passes
 * do not save ranges in `observe`.
 */
function successor(known: Registration | undefined, spec: ClusterSpec): RegisteredCluster {
  const before = known?.cluster;
  const generation = (known?.generation ?? 0) + 1;
  const isOpened = before?.spec.mode === 'observe' && spec.mode === 'enforce';
  const sameRanges = before !== undefined && !isOpened && sameRangesIn(before.spec, spec);
  return {
    spec,
    generation,
    rangesGeneration: sameRanges ? before.rangesGeneration : generation,
    ...(before?.paused !== undefined && { paused: before.paused }),
    ...(before?.owner !== undefined && { owner: before.owner }),
  };
}

/**
 * Ends the passes of a cluster. The cluster does not change. Its ranges, leases and run records stay in the table.
 * @returns whether the cluster was registered.
 * @throws TableError `ChangedMeanwhile`.
 */
export function unregisterCluster(
  table: KeyValueTable,
  name: string,
  { replaces }: Pick<RegisterOptions, 'replaces'> = {},
): Promise<boolean> {
  const change = (known: RegisteredCluster): Change<boolean> => {
    refuseOther(name, known, replaces);
    return { write: tombstoneContent(known.generation), result: true };
  };
  return changeRegistered(table, name, false, change);
}

/**
 * Sets the mode of a cluster. A change begins a new generation.
 * @returns the registered cluster; `undefined` if it is not registered.
 */
export function setClusterMode(table: KeyValueTable, name: string, mode: Mode): Promise<RegisteredCluster | undefined> {
  const change = (known: RegisteredCluster): Change<RegisteredCluster | undefined> => {
    if (known.spec.mode === mode) return { keep: known };
    const cluster = successor({ generation: known.generation, cluster: known }, { ...known.spec, mode });
    return { write: clusterContent(cluster), result: cluster };
  };
  return changeRegistered(table, name, undefined, change);
}

/**
 * Pauses the passes of one cluster; resumes them if `pause` is `undefined`.
 * @returns whether the cluster is registered.
 */
export function pauseCluster(table: KeyValueTable, name: string, pause: Pause | undefined): Promise<boolean> {
  const change = ({ paused: _, ...cluster }: RegisteredCluster): Change<boolean> => ({
    write: clusterContent({ ...cluster, ...(pause !== undefined && { paused: pause }) }),
    result: true,
  });
  return changeRegistered(table, name, false, change);
}

/**
 * Pauses the passes of all clusters; ends this pause if `pause` is `undefined`. The pauses of single clusters are
 * independent.
 */
export function pauseAllClusters(table: KeyValueTable, pause: Pause | undefined): Promise<void> {
  const change = (item: Item | undefined) => ({ write: pauseContent(pause, item), result: undefined });
  return guaranteedUpdate(table, CLUSTERS, ALL_CLUSTERS, change);
}

/**
 * Makes the stack the owner of a cluster. From its next tick on, its passes write, and the passes of the former owner only
 * observe.
 * @returns whether the cluster is registered.
 */
export function takeOverCluster(table: KeyValueTable, name: string, stack: string): Promise<boolean> {
  const change = (known: RegisteredCluster): Change<boolean> =>
    known.owner?.stack === stack ? { keep: true } : ownedBy(stack, known, true);
  return changeRegistered(table, name, false, change);
}

/**
 * Closes allocation in all ranges of a cluster by a new generation. Allocation opens when enforcing passes have saved the
 * ranges.
 * @returns the registered cluster; `undefined` if it is not registered.
 */
export function closeAllocation(
  table: KeyValueTable,
  name: string,
  options?: UpdateOptions,
): Promise<RegisteredCluster | undefined> {
  const change = (known: RegisteredCluster): Change<RegisteredCluster> => {
    const generation = known.generation + 1;
    const cluster = { ...known, generation, rangesGeneration: generation };
    return { write: clusterContent(cluster), result: cluster };
  };
  return changeRegistered<RegisteredCluster | undefined>(table, name, undefined, change, options);
}

function refuseOther(name: string, now: RegisteredCluster | undefined, replaces: number | 'none' | undefined): void {
  if (replaces === undefined || replaces === (now?.generation ?? 'none')) return;
  const found = now === undefined ? 'is no longer registered' : `is now registered in generation ${now.generation}`;
  throw new TableError(
    'ChangedMeanwhile',
    `${name} ${found}: another writer changed it meanwhile. Read it again, and try again.`,
  );
}

/** Decodes a registration. If the registration does not parse, returns only its generation. */
function registrationIn(item: Item): Registration {
  try {
    return decodeRegistration(item);
  } catch (error) {
    if (error instanceof TableError && error.code === 'Corrupt') return { generation: generationOf(item) };
    throw error;
  }
}

export function sameSpec(one: ClusterSpec, other: ClusterSpec): boolean {
  return sameValue(plainValue(one), plainValue(other));
}

function sameRangesIn(one: ClusterSpec, other: ClusterSpec): boolean {
  const [primary, secondary] = one.serviceClusterIPRanges;
  const [otherPrimary, otherSecondary] = other.serviceClusterIPRanges;
  return (
    primary === otherPrimary &&
    secondary === otherSecondary &&
    one.serviceNodePortRange === other.serviceNodePortRange &&
    one.allocator === other.allocator
  );
}
