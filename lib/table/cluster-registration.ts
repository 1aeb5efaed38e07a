import { isDeepStrictEqual } from 'node:util';
import type { ClusterSpec, Mode } from '../spec/cluster-spec.ts';
import { rangesOf } from '../spec/spec-ranges.ts';
import { defined } from '../util/values.ts';
import {
  ALL_CLUSTERS,
  CLUSTERS,
  changeRegistered,
  clusterContent,
  decodeRegistration,
  generationOf,
  type Pause,
  pauseContent,
  type RegisteredCluster,
  tombstoneContent,
} from './clusters.ts';
import { type Change, guaranteedUpdate } from './guaranteed-update.ts';
import { type Item, type KeyValueTable, TableError } from './key-value-table.ts';
import { fieldsIn, plainValue, sameValue } from './stored-item.ts';

interface RegisterOptions {
  /** The generation to replace, which the caller has read. `none`: no registration may exist. Default: replaces any. */
  readonly replaces?: number | 'none';
}

/**
 * Registers a spec, unless the same spec is already registered. A different spec gets a new generation. If the name was
 * registered earlier, the generations of the name continue: otherwise the stored ranges would count as newer than the spec.
 * @throws TableError `ChangedMeanwhile` if the registration has a different spec, and a generation other than `replaces`.
 */
export async function registerCluster(
  table: KeyValueTable,
  spec: ClusterSpec,
  { replaces }: RegisterOptions = {},
): Promise<RegisteredCluster> {
  const rangesGeneration = await generationOfRanges(table, spec.name);
  const change = (current: Item | undefined): Change<RegisteredCluster> => {
    const generation = current === undefined ? rangesGeneration : generationOf(current);
    const before = current && readableRegistration(current);
    if (before !== undefined && sameSpec(before.spec, spec)) return { keep: before };
    refuseOther(spec.name, before, replaces);
    const cluster = successor(before, generation, spec);
    return { write: clusterContent(cluster), result: cluster };
  };
  return guaranteedUpdate(table, CLUSTERS, spec.name, change);
}

/** Returns the last generation in which a range was saved; 0 if `#clusters/<name>` exists, because it has the generation. */
async function generationOfRanges(table: KeyValueTable, name: string): Promise<number> {
  if ((await table.get(CLUSTERS, name)) !== undefined) return 0;
  const ranges = await table.list(name, 'ranges/');
  return Math.max(0, ...ranges.map(({ value }) => Number(fieldsIn(value)?.['generation']) || 0));
}

/**
 * Returns the registration with the new spec and the next generation. Allocation closes if the ranges or the allocator
 * change, until a pass has saved the ranges. It also closes if the mode changes from `observe` to `enforce`, because passes
 * do not save ranges in `observe`.
 */
function successor(
  before: RegisteredCluster | undefined,
  lastGeneration: number,
  spec: ClusterSpec,
): RegisteredCluster {
  const generation = lastGeneration + 1;
  const isOpened = before?.spec.mode === 'observe' && spec.mode === 'enforce';
  const sameRanges =
    before?.spec.allocator === spec.allocator && isDeepStrictEqual(rangesOf(before.spec), rangesOf(spec));
  return {
    spec,
    generation,
    rangesGeneration: sameRanges && !isOpened ? before.rangesGeneration : generation,
    ...defined({ paused: before?.paused, owner: before?.owner }),
  };
}

/** Returns the changed registration: the same object if nothing changes, `undefined` to unregister the cluster. */
export type RegistrationChange = (cluster: RegisteredCluster) => RegisteredCluster | undefined;

/** Unregisters a cluster: its passes end. The cluster itself does not change, and its other items stay in the table. */
export const unregistered: RegistrationChange = () => undefined;

/** Sets the mode. A change begins a new generation. */
export function withMode(mode: Mode): RegistrationChange {
  return (cluster) => {
    const { generation, spec } = cluster;
    return spec.mode === mode ? cluster : successor(cluster, generation, { ...spec, mode });
  };
}

/** Pauses the passes of a cluster. If `pause` is `undefined`, resumes the passes. */
export function withPause(pause: Pause | undefined): RegistrationChange {
  return (cluster) => {
    const { paused, ...rest } = cluster;
    if (pause === undefined) return paused === undefined ? cluster : rest;
    return { ...rest, paused: pause };
  };
}

/** Makes the stack the owner: from the next tick, its passes write, and the passes of the former owner only observe. */
export function withOwner(stack: string): RegistrationChange {
  return (cluster) => (cluster.owner?.stack === stack ? cluster : { ...cluster, owner: { stack } });
}

/** Closes allocation in all ranges by a new generation. Allocation opens when passes in `enforce` have saved the ranges. */
export function withAllocationClosed(cluster: RegisteredCluster): RegisteredCluster {
  const generation = cluster.generation + 1;
  return { ...cluster, generation, rangesGeneration: generation };
}

/**
 * Changes the registration of a cluster. Returns whether the cluster was registered.
 * @throws TableError `ChangedMeanwhile` if the registration has another generation than `replaces`.
 */
export function updateCluster(
  table: KeyValueTable,
  name: string,
  change: RegistrationChange,
  { replaces }: RegisterOptions = {},
): Promise<boolean> {
  const update = (known: RegisteredCluster): Change<boolean> => {
    refuseOther(name, known, replaces);
    const next = change(known);
    if (next === known) return { keep: true };
    return { write: next === undefined ? tombstoneContent(known.generation) : clusterContent(next), result: true };
  };
  return changeRegistered(table, name, false, update);
}

/** Pauses all clusters. If `pause` is `undefined`, ends this pause. The pauses of single clusters do not change. */
export function pauseAllClusters(table: KeyValueTable, pause: Pause | undefined): Promise<void> {
  const change = (item: Item | undefined) => ({ write: pauseContent(pause, item), result: undefined });
  return guaranteedUpdate(table, CLUSTERS, ALL_CLUSTERS, change);
}

function refuseOther(name: string, now: RegisteredCluster | undefined, replaces: number | 'none' | undefined): void {
  if (replaces === undefined || replaces === (now?.generation ?? 'none')) return;
  const found = now === undefined ? 'is no longer registered' : `is now registered in generation ${now.generation}`;
  throw new TableError(
    'ChangedMeanwhile',
    `${name} ${found}: another writer changed it meanwhile. Read it again, and try again.`,
  );
}

/** Returns `undefined` for a registration that does not parse, so that it is replaced. @throws TableError `SchemaTooNew` */
function readableRegistration(item: Item): RegisteredCluster | undefined {
  try {
    return decodeRegistration(item);
  } catch (error) {
    if (error instanceof TableError && error.code === 'Corrupt') return undefined;
    throw error;
  }
}

export function sameSpec(one: ClusterSpec, other: ClusterSpec): boolean {
  return sameValue(plainValue(one), plainValue(other));
}
