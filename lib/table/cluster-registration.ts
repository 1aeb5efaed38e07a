import type { ClusterSpec, Mode } from '../cluster/cluster-spec.ts';
import {
  ALL_CLUSTERS,
  CLUSTERS,
  clusterContent,
  decodeRegistration,
  generationOf,
  type Owner,
  type Pause,
  pauseContent,
  type RegisteredCluster,
  type Registration,
  specValue,
  tombstoneContent,
} from './clusters.ts';
import { TableError } from './errors.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import { fieldsIn, sameValue } from './item-values.ts';
import type { Item, KeyValueTable } from './key-value-table.ts';

export interface ReplaceOptions extends UpdateOptions {
  /** The generation that somebody looked at and wants to be replaced, or that none was registered. Default: whatever is there. */
  readonly replaces?: number | 'none';
}

export interface RegisterOptions extends ReplaceOptions {
  /** Who is to own the cluster, if nobody does yet. Default: the first stack that comes by. */
  readonly stack?: string;
}

/**
 * Makes the registration what the spec says: the same spec again writes nothing, another one is a new generation.
 * Generations go on where an earlier registration of the name ended, or ranges that it saved would pass for newer.
 * A registration that does not parse is replaced.
 * @returns the cluster as it is now registered.
 * @throws TableError `OwnedElsewhere` for a packaged spec, which is edited in its package alone, and for one that
 * another stack than the given one owns; `ChangedMeanwhile`, unless somebody else wrote the same.
 */
export async function registerCluster(
  table: KeyValueTable,
  spec: ClusterSpec,
  { stack, replaces, ...options }: RegisterOptions = {},
): Promise<RegisteredCluster> {
  const lost = await lostRegistration(table, spec.name);
  return guaranteedUpdate(
    table,
    CLUSTERS,
    spec.name,
    (current) => {
      const known = current === undefined ? lost : registrationIn(current);
      const before = known?.cluster;
      const owner = before?.owner ?? (stack === undefined ? undefined : { stack });
      if (before !== undefined) refusePackaged(before);
      if (stack !== undefined && owner?.stack !== stack) throw ownedElsewhere(spec.name, owner?.stack);
      const cluster = successor(known, spec, owner);
      if (before !== undefined && sameSpec(before.spec, spec) && sameOwner(before.owner, owner)) {
        return { keep: before };
      }
      refuseOther(spec.name, before, replaces);
      return { write: clusterContent(cluster), result: cluster };
    },
    options,
  );
}

/**
 * Returns the generation that the ranges of a name were saved under, when its registration is gone from the table: the
 * next one has to be later, or every pass would take those ranges for newer than its spec.
 */
export async function lostRegistration(table: KeyValueTable, name: string): Promise<Registration | undefined> {
  if ((await table.get(CLUSTERS, name)) !== undefined) return undefined;
  const ranges = await table.list(name, 'ranges/');
  const generations = ranges.map(({ value }) => Number(fieldsIn(value)?.['generation']) || 0);
  const generation = Math.max(0, ...generations);
  return generation === 0 ? undefined : { generation };
}

/**
 * Returns the registration that follows: the same generation for the same spec. A change of ranges or allocator closes
 * allocation until a pass has saved the ranges, and so does the change from `observe` to `enforce`: no pass saved them
 * while the cluster was observed.
 */
export function successor(
  known: Registration | undefined,
  spec: ClusterSpec,
  owner: Owner | undefined,
): RegisteredCluster {
  const before = known?.cluster;
  const isSame = before !== undefined && sameSpec(before.spec, spec);
  const generation = isSame ? before.generation : (known?.generation ?? 0) + 1;
  const isOpened = before?.spec.mode === 'observe' && spec.mode === 'enforce';
  const sameRanges = before !== undefined && !isOpened && sameRangesIn(before.spec, spec);
  return {
    spec,
    generation,
    rangesGeneration: sameRanges ? before.rangesGeneration : generation,
    ...(before?.paused !== undefined && { paused: before.paused }),
    ...(owner !== undefined && { owner }),
  };
}

/**
 * Ends the passes of a cluster. Nothing is changed in the cluster itself, and its ranges, leases and run records stay in
 * the table. @returns whether it was registered.
 * @throws TableError `OwnedElsewhere` for a packaged spec, `ChangedMeanwhile`.
 */
export function unregisterCluster(
  table: KeyValueTable,
  name: string,
  { replaces, ...options }: ReplaceOptions = {},
): Promise<boolean> {
  return guaranteedUpdate(
    table,
    CLUSTERS,
    name,
    (current) => {
      const known = current && decodeRegistration(current);
      if (known?.cluster === undefined) return { keep: false };
      refusePackaged(known.cluster);
      refuseOther(name, known.cluster, replaces);
      return { write: tombstoneContent(known.generation), result: true };
    },
    options,
  );
}

/**
 * Says whether its passes write, in a new generation unless they did so already.
 * @returns the cluster as it is now registered; `undefined` when it is not.
 * @throws TableError `OwnedElsewhere` for a packaged spec.
 */
export function setClusterMode(
  table: KeyValueTable,
  name: string,
  mode: Mode,
  options?: UpdateOptions,
): Promise<RegisteredCluster | undefined> {
  const change = (known: RegisteredCluster): Change<RegisteredCluster | undefined> => {
    refusePackaged(known);
    if (known.spec.mode === mode) return { keep: known };
    const { generation } = known;
    const cluster = successor({ generation, cluster: known }, { ...known.spec, mode }, known.owner);
    return { write: clusterContent(cluster), result: cluster };
  };
  return changeRegistered(table, name, undefined, change, options);
}

/** Holds one cluster's passes, or with `undefined` lets them go on. @returns whether the cluster is registered. */
export function pauseCluster(
  table: KeyValueTable,
  name: string,
  pause: Pause | undefined,
  options?: UpdateOptions,
): Promise<boolean> {
  const change = ({ paused: _, ...cluster }: RegisteredCluster): Change<boolean> => ({
    write: clusterContent({ ...cluster, ...(pause !== undefined && { paused: pause }) }),
    result: true,
  });
  return changeRegistered(table, name, false, change, options);
}

/** Holds the passes of all clusters, or with `undefined` lets them go on; the hold on a single one is another matter. */
export async function pauseAllClusters(
  table: KeyValueTable,
  pause: Pause | undefined,
  options?: UpdateOptions,
): Promise<void> {
  await guaranteedUpdate(
    table,
    CLUSTERS,
    ALL_CLUSTERS,
    () => ({ write: pauseContent(pause), result: undefined }),
    options,
  );
}

/**
 * Makes a cluster that nobody owns that stack's.
 * @returns who owns it now; `undefined` when it is not registered.
 */
export function claimCluster(
  table: KeyValueTable,
  name: string,
  stack: string,
  options?: UpdateOptions,
): Promise<string | undefined> {
  const change = (known: RegisteredCluster): Change<string | undefined> =>
    known.owner === undefined ? ownedBy(stack, known, stack) : { keep: known.owner.stack };
  return changeRegistered(table, name, undefined, change, options);
}

/**
 * Makes that stack the owner, whoever is: from its next tick on its passes write, and those of the former owner only
 * observe. A spec that was packaged is a registered one from then on, until the new owner packages it.
 * @returns whether the cluster is registered.
 */
export function takeOverCluster(
  table: KeyValueTable,
  name: string,
  stack: string,
  options?: UpdateOptions,
): Promise<boolean> {
  const change = (known: RegisteredCluster): Change<boolean> =>
    known.owner?.stack === stack ? { keep: true } : ownedBy(stack, known, true);
  return changeRegistered(table, name, false, change, options);
}

/** Changes what is registered under a name; where nothing is, nothing is written and the answer is `absent`. */
function changeRegistered<Result>(
  table: KeyValueTable,
  name: string,
  absent: Result,
  change: (known: RegisteredCluster) => Change<Result>,
  options: UpdateOptions | undefined,
): Promise<Result> {
  const update = (current: Item | undefined): Change<Result> => {
    const known = current && decodeRegistration(current).cluster;
    return known === undefined ? { keep: absent } : change(known);
  };
  return guaranteedUpdate(table, CLUSTERS, name, update, options);
}

function ownedBy<Result>(stack: string, known: RegisteredCluster, result: Result): Change<Result> {
  return { write: clusterContent({ ...known, owner: { stack } }), result };
}

function refusePackaged({ spec: { name }, owner }: RegisteredCluster): void {
  if (owner?.packaged === undefined) return;
  throw new TableError(
    'OwnedElsewhere',
    `${name} is registered by the cluster.yml of the stack ${owner.stack}: change it there and deploy, or take it out there first.`,
  );
}

function refuseOther(name: string, now: RegisteredCluster | undefined, replaces: number | 'none' | undefined): void {
  if (replaces === undefined || replaces === (now?.generation ?? 'none')) return;
  const found = now === undefined ? 'is no longer registered' : `is registered in generation ${now.generation} now`;
  throw new TableError(
    'ChangedMeanwhile',
    `${name} ${found}, and was not a moment ago: somebody else changed it. Look at it anew, and try again.`,
  );
}

function ownedElsewhere(name: string, stack: string | undefined): TableError {
  return new TableError(
    'OwnedElsewhere',
    `${name} belongs to the stack ${stack}: register it there, or take it over first.`,
  );
}

/** What is registered under a name, as far as it can be read: what does not parse is as good as none. */
export function registrationIn(item: Item): Registration {
  try {
    return decodeRegistration(item);
  } catch (error) {
    if (error instanceof TableError && error.code === 'Corrupt') return { generation: generationOf(item) };
    throw error;
  }
}

export function sameSpec(one: ClusterSpec, other: ClusterSpec): boolean {
  return sameValue(specValue(one), specValue(other));
}

function sameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.stack === other?.stack;
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
