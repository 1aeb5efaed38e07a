import * as z from 'zod/mini';
import { BOUNDS, fieldOver, type OverBoundField } from '../cluster/bounds.ts';
import { type ClusterSpec, clusterSpecShape } from '../cluster/cluster-spec.ts';
import { clusterName } from '../cluster/shapes.ts';
import { type Change, guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import { type Item, type KeyValueTable, type NewItem, TableError } from './key-value-table.ts';
import { count, decodeItem, fieldsIn, plainValue } from './stored-item.ts';

const pauseShape = z.object({
  paused: z.exactOptional(z.object({ untilMs: z.number(), reason: z.string(), by: z.string() })),
});

const nameShape = z.object({
  /** Increases with every change of the spec. */
  generation: count,
  /** Absent: the first stack that runs a pass of kubernetes-service for the cluster becomes the owner. */
  owner: z.exactOptional(z.object({ stack: z.string() })),
});

const generationShape = z.pick(nameShape, { generation: true });

export type Pause = Readonly<NonNullable<z.infer<typeof pauseShape>['paused']>>;

/** The stack whose passes write to the cluster and to its part of the table. Passes of other stacks only observe. */
export type Owner = Readonly<NonNullable<z.infer<typeof nameShape>['owner']>>;

/** `#clusters/<name>`: one registered control plane. */
export interface RegisteredCluster extends Readonly<z.infer<typeof nameShape>> {
  readonly spec: ClusterSpec;
  /** The generation of the last change of ranges or allocator, of `enforce`, or of a closed allocation. */
  readonly rangesGeneration: number;
  readonly paused?: Pause;
}

export interface ListedCluster extends RegisteredCluster {
  readonly writtenAtMs: number;
}

/** All registrations. One that cannot be read does not hide the others. */
export interface ClusterList {
  readonly clusters: readonly ListedCluster[];
  readonly unreadable: readonly { readonly name: string; readonly error: TableError }[];
  readonly pausedAll?: Pause;
}

/**
 * Returns the stack that owns a cluster if it is not this process's. A process without a stack, as on a developer's
 * machine, writes with its user's rights.
 */
export function otherOwner(
  { owner }: { readonly owner?: Owner | undefined },
  stack: string | undefined,
): string | undefined {
  return stack === undefined || owner?.stack === stack ? undefined : owner?.stack;
}

/**
 * The partition of all registrations; no cluster can have this name, nor that of the pause of all clusters. A partition
 * serves 3,000 strongly consistent reads of 4 KB a second. A registration is about 1 KB, so that 10,000 clusters need
 * some 1,640:
 *
 * 1,000 the registration of each pass of kubernetes-service, every 10 s
 * 290 those of the other loops, every 60 and 180 s
 * 80 the pause of all clusters, once for each message of 16 clusters
 * 110 the list of all clusters, 2,500 reads each, by each loop's scheduled function
 * 170 those whose health is counted, once a minute
 *
 * Ticks are spread over ten seconds, and so are the lists (lib/dispatch/cluster-list.ts): no second has many more.
 */
export const CLUSTERS = '#clusters';
export const ALL_CLUSTERS = '*';
const SCHEMA = 1;
const REGISTER_AGAIN = 'register the cluster again, with its whole spec';

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster | undefined> {
  const item = await table.get(CLUSTERS, name);
  return item && decodeRegistration(item).cluster;
}

/** Reads one registration as a list: empty, of one, or of one that cannot be read. */
export async function readListed(table: KeyValueTable, name: string): Promise<ClusterList> {
  const item = await table.get(CLUSTERS, name);
  return clustersIn(item === undefined ? [] : [item]);
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readPauseOfAll(table: KeyValueTable): Promise<Pause | undefined> {
  const item = await table.get(CLUSTERS, ALL_CLUSTERS);
  return item && decodeItem(item, pauseShape, SCHEMA).paused;
}

/**
 * Returns all registrations in byte order of names.
 * @throws TableError `SchemaTooNew`, `Corrupt` only for the pause of all clusters.
 */
export async function listClusters(table: KeyValueTable): Promise<ClusterList> {
  const clusters: ListedCluster[] = [];
  const unreadable: ClusterList['unreadable'][number][] = [];
  let pausedAll: Pause | undefined;
  for await (const page of clusterPages(table)) {
    clusters.push(...page.clusters);
    unreadable.push(...page.unreadable);
    pausedAll ??= page.pausedAll;
  }
  return { clusters, unreadable, ...(pausedAll !== undefined && { pausedAll }) };
}

/**
 * Iterates over the registrations a page at a time, because thousands of specs are too much memory. The pause of all
 * clusters comes with the first page.
 * @throws TableError `SchemaTooNew`, `Corrupt` only for the pause of all clusters.
 */
export async function* clusterPages(
  table: KeyValueTable,
  beforeNext?: () => Promise<void>,
): AsyncGenerator<ClusterList> {
  const pages = table.pages?.(CLUSTERS, '', beforeNext) ?? [await table.list(CLUSTERS, '')];
  for await (const items of pages) yield clustersIn(items);
}

export function clustersIn(items: readonly Item[]): ClusterList {
  const clusters: ListedCluster[] = [];
  const unreadable: { name: string; error: TableError }[] = [];
  let pausedAll: Pause | undefined;
  for (const item of items) {
    if (item.key === ALL_CLUSTERS) {
      pausedAll = decodeItem(item, pauseShape, SCHEMA).paused;
      continue;
    }
    try {
      const { cluster } = decodeRegistration(item);
      if (cluster !== undefined) clusters.push({ ...cluster, writtenAtMs: item.updatedAtMs });
    } catch (error) {
      if (!(error instanceof TableError)) throw error;
      unreadable.push({ name: item.key, error });
    }
  }
  return { clusters, unreadable, ...(pausedAll !== undefined && { pausedAll }) };
}

export function clusterContent(cluster: RegisteredCluster): Omit<NewItem, 'cluster' | 'key'> {
  const { spec, generation, rangesGeneration, paused, owner } = cluster;
  return { schema: SCHEMA, value: plainValue({ spec, generation, rangesGeneration, paused, owner }) };
}

/** Returns the tombstone of a name that is no longer registered: its last generation. */
export function tombstoneContent(generation: number): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { generation } };
}

/**
 * @param over the item that it replaces, also if that does not parse.
 * @throws TableError `SchemaTooNew`.
 */
export function pauseContent(paused: Pause | undefined, over: Item | undefined): Omit<NewItem, 'cluster' | 'key'> {
  if (over !== undefined) decodeItem(over, z.unknown(), SCHEMA);
  return { schema: SCHEMA, value: plainValue({ paused }) };
}

/** Returns the generation, even of an item whose spec does not parse. */
export function generationOf(item: Item): number {
  return decodeItem(item, generationShape, SCHEMA).generation;
}

export interface Registration extends Readonly<z.infer<typeof nameShape>> {
  /** Absent when the name is no longer registered. */
  readonly cluster?: RegisteredCluster;
}

const clusterShape = z.extend(pauseShape, {
  spec: clusterSpecShape,
  rangesGeneration: count,
});

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRegistration(item: Item): Registration {
  // Without a readable generation, registering again would fail too: that item must be deleted.
  generationOf(item);
  const name = decodeItem(item, nameShape, SCHEMA, REGISTER_AGAIN);
  const spec = fieldsIn(item.value)?.['spec'];
  if (spec === undefined) return name;
  // A message of ticks with such a name would not be read, and its other clusters would have no pass.
  if (!clusterName.safeParse(item.key).success) {
    throw new TableError('Corrupt', `Item ${item.cluster}/${item.key} is no name of a cluster; remove it.`);
  }
  const over = fieldOver(spec, BOUNDS['cluster spec']);
  if (over !== undefined) throw tooManyEntries(item, over);
  const cluster = decodeItem(item, clusterShape, SCHEMA, REGISTER_AGAIN);
  if (cluster.spec.name === item.key) return { ...name, cluster: { ...name, ...cluster } };
  throw new TableError(
    'Corrupt',
    `Item ${item.cluster}/${item.key} holds the spec of ${cluster.spec.name}; register both again.`,
  );
}

function tooManyEntries({ cluster, key }: Item, { field, entries, most }: OverBoundField): TableError {
  const message = `Item ${cluster}/${key} has ${entries} entries in ${field} of its spec, and at most ${most} are accepted`;
  return new TableError('Corrupt', `${message}. It was not changed; ${REGISTER_AGAIN}.`);
}

/**
 * Makes a stack the owner of a cluster that has no owner.
 * @returns the owner; `undefined` if the cluster is not registered.
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

/** Changes the registration of a name; without one, writes nothing and returns `absent`. */
export function changeRegistered<Result>(
  table: KeyValueTable,
  name: string,
  absent: Result,
  change: (known: RegisteredCluster) => Change<Result>,
  options?: UpdateOptions,
): Promise<Result> {
  const update = (current: Item | undefined): Change<Result> => {
    const known = current && decodeRegistration(current).cluster;
    return known === undefined ? { keep: absent } : change(known);
  };
  return guaranteedUpdate(table, CLUSTERS, name, update, options);
}

export function ownedBy<Result>(stack: string, known: RegisteredCluster, result: Result): Change<Result> {
  return { write: clusterContent({ ...known, owner: { stack } }), result };
}
