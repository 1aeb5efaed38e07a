import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { TableError } from './errors.ts';
import { fieldsOf, type ItemFields } from './item-fields.ts';
import type { Item, KeyValueTable, NewItem, TableValue } from './key-value-table.ts';
import { fieldsIn } from './values.ts';

/** A hold on one cluster's passes, or on all. */
export interface Pause {
  readonly untilMs: number;
  readonly reason: string;
  readonly by: string;
}

/** `#clusters/<name>`: one registered control plane. */
export interface RegisteredCluster {
  readonly spec: ClusterSpec;
  /** Grows with every change of the spec. */
  readonly generation: number;
  /** The generation at which the ranges or the allocator last changed. */
  readonly rangesGeneration: number;
  readonly paused?: Pause;
}

/** All that is registered. One cluster that cannot be read does not hide the others. */
export interface ClusterList {
  readonly clusters: readonly RegisteredCluster[];
  readonly unreadable: readonly { readonly name: string; readonly error: TableError }[];
  /** The hold on all clusters. */
  readonly pausedAll?: Pause;
}

/** The partition of all registrations; no cluster can have this name, nor that of the hold on all. */
export const CLUSTERS = '#clusters';
export const ALL_CLUSTERS = '*';
const SCHEMA = 1;

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readCluster(table: KeyValueTable, name: string): Promise<RegisteredCluster | undefined> {
  const item = await table.get(CLUSTERS, name);
  return item && decodeRegistration(item).cluster;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readPauseOfAll(table: KeyValueTable): Promise<Pause | undefined> {
  const item = await table.get(CLUSTERS, ALL_CLUSTERS);
  return item && pauseIn(fieldsOf(item, SCHEMA));
}

/** In byte order of names. @throws TableError `SchemaTooNew`, `Corrupt` for the hold on all alone. */
export async function listClusters(table: KeyValueTable): Promise<ClusterList> {
  const items = await table.list(CLUSTERS, '');
  const clusters: RegisteredCluster[] = [];
  const unreadable: { name: string; error: TableError }[] = [];
  let pausedAll: Pause | undefined;
  for (const item of items) {
    if (item.key === ALL_CLUSTERS) {
      pausedAll = pauseIn(fieldsOf(item, SCHEMA));
      continue;
    }
    const cluster = readable(item);
    if (cluster instanceof TableError) unreadable.push({ name: item.key, error: cluster });
    else if (cluster !== undefined) clusters.push(cluster);
  }
  return { clusters, unreadable, ...(pausedAll !== undefined && { pausedAll }) };
}

export function clusterContent(cluster: RegisteredCluster): Omit<NewItem, 'cluster' | 'key'> {
  const { spec, generation, rangesGeneration, paused } = cluster;
  return {
    schema: SCHEMA,
    value: { spec: specValue(spec), generation, rangesGeneration, paused: paused && { ...paused } },
  };
}

/** What stays of a name that is no longer registered: where its generations ended. */
export function tombstoneContent(generation: number): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { generation } };
}

export function pauseContent(pause: Pause | undefined): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { paused: pause && { ...pause } } };
}

/** What an item says; `cluster` is absent when the name is no longer registered. */
export function decodeRegistration(item: Item): { readonly generation: number; readonly cluster?: RegisteredCluster } {
  const fields = fieldsOf(item, SCHEMA);
  const generation = fields.count('generation');
  const spec = fields.optionalFields('spec');
  if (spec === undefined) return { generation };
  const paused = pauseIn(fields);
  return {
    generation,
    cluster: {
      spec: specIn(item, spec),
      generation,
      rangesGeneration: fields.count('rangesGeneration'),
      ...(paused !== undefined && { paused }),
    },
  };
}

/** A spec is plain data, and was validated before it was registered: its schema number vouches for the rest of it. */
export function specValue(spec: ClusterSpec): TableValue {
  return spec as unknown as TableValue;
}

function specIn(item: Item, fields: ItemFields): ClusterSpec {
  const name = fields.text('name');
  if (name !== item.key) {
    throw new TableError('Corrupt', `Item ${item.cluster}/${item.key} holds the spec of ${name}; register both anew.`);
  }
  fields.oneOf('mode', ['observe', 'enforce']);
  fields.oneOf('allocator', ['table', 'apiserver']);
  return fieldsIn(item.value)?.['spec'] as unknown as ClusterSpec;
}

function pauseIn(fields: ItemFields): Pause | undefined {
  const pause = fields.optionalFields('paused');
  return pause && { untilMs: pause.number('untilMs'), reason: pause.text('reason'), by: pause.text('by') };
}

function readable(item: Item): RegisteredCluster | TableError | undefined {
  try {
    return decodeRegistration(item).cluster;
  } catch (error) {
    if (error instanceof TableError) return error;
    throw error;
  }
}
