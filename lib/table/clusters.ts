import * as z from 'zod/mini';
import { type ClusterSpec, clusterSpecShape } from '../spec/cluster-spec.ts';
import { clusterName, count } from '../spec/shapes.ts';
import { BOUNDS, fieldOver, type OverBoundField } from '../util/bounds.ts';
import { defined } from '../util/values.ts';
import { type Change, guaranteedUpdate } from './guaranteed-update.ts';
import { type Item, type KeyValueTable, type NewItem, TableError } from './key-value-table.ts';
import { decodeItem, fieldsIn, plainValue } from './stored-item.ts';

const pause = z.object({ untilMs: z.number(), reason: z.string(), by: z.string() });
const pauseShape = z.object({ paused: z.exactOptional(pause) });
const owner = z.object({ stack: z.string() });

const clusterShape = z.extend(pauseShape, {
  spec: clusterSpecShape as z.ZodMiniType<ClusterSpec>,
  /** Increases with every change of the spec, and when allocation is closed. */
  generation: count,
  /** The generation in which the ranges or the allocator last changed, the mode became `enforce`, or allocation was closed. */
  rangesGeneration: count,
  /** If there is no owner, the first stack that runs a pass of kubernetes-service for the cluster becomes the owner. */
  owner: z.exactOptional(owner),
});

const generationShape = z.pick(clusterShape, { generation: true });

export type Pause = Readonly<z.infer<typeof pause>>;

/** The stack whose passes write to the cluster and to its part of the table. Passes of other stacks only observe. */
export type Owner = Readonly<z.infer<typeof owner>>;

/** A registered cluster, which is stored as `#clusters/<name>`. */
export interface RegisteredCluster extends Readonly<z.infer<typeof clusterShape>> {}

export interface ListedCluster extends RegisteredCluster {
  readonly writtenAtMs: number;
}

export interface ClusterList {
  readonly clusters: readonly ListedCluster[];
  readonly unreadable: readonly { readonly name: string; readonly error: TableError }[];
  readonly pausedAll?: Pause;
}

/**
 * Returns the stack that owns a cluster, if it is not the stack of this process. For a process without a stack, such as
 * `kbctl` on a developer's machine, returns `undefined`: the process writes with the rights of its user.
 */
export function otherOwner(
  { owner }: { readonly owner?: Owner | undefined },
  stack: string | undefined,
): string | undefined {
  return stack === undefined || owner?.stack === stack ? undefined : owner?.stack;
}

/**
 * The partition of all registrations and of the pause of all clusters. No cluster can be named `#clusters` or `*`.
 * DynamoDB serves 3,000 strongly consistent reads of 4 KB per second from one partition. The passes and lists of 10,000
 * clusters need about 1,650 per second if they are spread over ten seconds (lib/dispatch/cluster-list.ts).
 */
export const CLUSTERS = '#clusters';
export const ALL_CLUSTERS = '*';
const SCHEMA = 1;
const REGISTER_AGAIN = 'register the cluster again, with its whole spec';

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster | undefined> {
  const item = await table.get(CLUSTERS, name);
  return item && decodeRegistration(item);
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readPauseOfAll(table: KeyValueTable): Promise<Pause | undefined> {
  const item = await table.get(CLUSTERS, ALL_CLUSTERS);
  return item && decodeItem(item, pauseShape, SCHEMA).paused;
}

/**
 * Returns all registrations in byte order of names. A registration that does not parse is in `unreadable`.
 * @throws TableError if the pause of all clusters does not parse.
 */
export async function listClusters(table: KeyValueTable): Promise<ClusterList> {
  return clustersIn(await table.list(CLUSTERS, ''));
}

/** Returns the registrations in pages, because thousands of them need much memory. The first page has the pause of all clusters. */
export async function* clusterPages(
  table: KeyValueTable,
  beforeNext?: () => Promise<void>,
): AsyncGenerator<ClusterList> {
  for await (const items of pagesOfClusters(table, beforeNext)) yield clustersIn(items);
}

/** Returns all names that are or were registered. Does not decode the specs, because thousands of specs would take long. */
export async function clusterNames(table: KeyValueTable): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for await (const items of pagesOfClusters(table)) for (const { key } of items) names.add(key);
  names.delete(ALL_CLUSTERS);
  return names;
}

async function* pagesOfClusters(
  table: KeyValueTable,
  beforeNext?: () => Promise<void>,
): AsyncGenerator<readonly Item[]> {
  if (table.pages !== undefined) yield* table.pages(CLUSTERS, '', beforeNext);
  else yield await table.list(CLUSTERS, '');
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
      const cluster = decodeRegistration(item);
      if (cluster !== undefined) clusters.push({ ...cluster, writtenAtMs: item.updatedAtMs });
    } catch (error) {
      if (!(error instanceof TableError)) throw error;
      unreadable.push({ name: item.key, error });
    }
  }
  return { clusters, unreadable, ...defined({ pausedAll }) };
}

export function clusterContent(cluster: RegisteredCluster): Omit<NewItem, 'cluster' | 'key'> {
  const { spec, generation, rangesGeneration, paused, owner } = cluster;
  return { schema: SCHEMA, value: plainValue({ spec, generation, rangesGeneration, paused, owner }) };
}

/** Returns the content for a name that is no longer registered: only the last generation. */
export function tombstoneContent(generation: number): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { generation } };
}

/** @param over the item to replace, even if its value does not parse. @throws TableError `SchemaTooNew` */
export function pauseContent(paused: Pause | undefined, over: Item | undefined): Omit<NewItem, 'cluster' | 'key'> {
  if (over !== undefined) decodeItem(over, z.unknown(), SCHEMA);
  return { schema: SCHEMA, value: plainValue({ paused }) };
}

/** Returns the generation of a registration, even if its spec does not parse. */
export function generationOf(item: Item): number {
  return decodeItem(item, generationShape, SCHEMA).generation;
}

/** Returns `undefined` if the name is no longer registered. @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRegistration(item: Item): RegisteredCluster | undefined {
  // An unreadable generation also stops a new registration, so this error advises to correct or remove the item.
  generationOf(item);
  const spec = fieldsIn(item.value)?.['spec'];
  if (spec === undefined) return undefined;
  // A message with an invalid cluster name would be rejected as a whole, and no other cluster in this message would have a pass.
  if (!clusterName.safeParse(item.key).success) {
    throw new TableError('Corrupt', `Item ${item.cluster}/${item.key} is no name of a cluster; remove it.`);
  }
  const over = fieldOver(spec, BOUNDS['cluster spec']);
  if (over !== undefined) throw tooManyEntries(item, over);
  const cluster = decodeItem(item, clusterShape, SCHEMA, REGISTER_AGAIN);
  if (cluster.spec.name === item.key) return cluster;
  throw new TableError(
    'Corrupt',
    `Item ${item.cluster}/${item.key} holds the spec of ${cluster.spec.name}; register both again.`,
  );
}

function tooManyEntries({ cluster, key }: Item, { field, entries, most }: OverBoundField): TableError {
  const message = `Item ${cluster}/${key} has ${entries} entries in ${field} of its spec, and at most ${most} are accepted`;
  return new TableError('Corrupt', `${message}. It was not changed; ${REGISTER_AGAIN}.`);
}

/** Makes a stack the owner of a cluster without an owner. Returns the owner; `undefined` if the cluster is not registered. */
export function claimCluster(table: KeyValueTable, name: string, stack: string): Promise<string | undefined> {
  const change = (known: RegisteredCluster): Change<string | undefined> =>
    known.owner === undefined
      ? { write: clusterContent({ ...known, owner: { stack } }), result: stack }
      : { keep: known.owner.stack };
  return changeRegistered(table, name, undefined, change);
}

/** Changes the registration of a name. If the name is not registered, writes nothing and returns `absent`. */
export function changeRegistered<Result>(
  table: KeyValueTable,
  name: string,
  absent: Result,
  change: (known: RegisteredCluster) => Change<Result>,
): Promise<Result> {
  return guaranteedUpdate(table, CLUSTERS, name, (current) => {
    const known = current && decodeRegistration(current);
    return known === undefined ? { keep: absent } : change(known);
  });
}
