import { type ClusterSpec, LOOPS } from '../cluster/cluster-spec.ts';
import { TableError } from './errors.ts';
import { fieldsIn, fieldsOf, type ItemFields } from './item-values.ts';
import type { Item, KeyValueTable, NewItem, TableValue } from './key-value-table.ts';

/** A pause of one cluster's passes, or of all. */
export interface Pause {
  readonly untilMs: number;
  readonly reason: string;
  readonly by: string;
}

/** The stack whose passes write, to the cluster and to its part of the table. Passes of other stacks only observe. */
export interface Owner {
  readonly stack: string;
  /** The spec is the `cluster.yml` of that stack, and is edited only there. */
  readonly packaged?: PackagedMark;
}

/** Which process registered a packaged spec, by its start, and when. */
export interface PackagedMark {
  readonly startedAtMs: number;
  readonly writtenAtMs: number;
}

/** `#clusters/<name>`: one registered control plane. */
export interface RegisteredCluster {
  readonly spec: ClusterSpec;
  /** Grows with every change of the spec. */
  readonly generation: number;
  /** The generation at which the ranges or the allocator last changed, or allocation was closed: by an import, a command, or `enforce`. */
  readonly rangesGeneration: number;
  readonly paused?: Pause;
  /** Absent: the first stack that runs a pass becomes the owner. */
  readonly owner?: Owner;
}

export interface ListedCluster extends RegisteredCluster {
  /** When its registration was last written. */
  readonly writtenAtMs: number;
}

/** All registrations. One that cannot be read does not hide the others. */
export interface ClusterList {
  readonly clusters: readonly ListedCluster[];
  readonly unreadable: readonly { readonly name: string; readonly error: TableError }[];
  /** The pause of all clusters. */
  readonly pausedAll?: Pause;
}

/**
 * Returns the stack that owns a cluster, when it is another one than this process's. A process without a stack, as on a
 * developer's machine, writes with rights of its own.
 */
export function otherOwner(
  { owner }: { readonly owner?: Owner | undefined },
  stack: string | undefined,
): string | undefined {
  return stack === undefined || owner?.stack === stack ? undefined : owner?.stack;
}

/**
 * The partition of all registrations; no cluster can have this name, nor that of the pause of all. A partition serves 3,000
 * strongly consistent reads of 4 KB a second. A registration is about 1 KB, so that 10,000 clusters need some 1,470:
 *
 *     1,000  the registration of each pass of kubernetes-service, every 10 s
 *       290  those of the other loops, every 60 and 180 s
 *        80  the pause of all, once for each message of 16 clusters
 *       110  the list of all, 2,500 reads each, by each loop's scheduled function
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

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readPauseOfAll(table: KeyValueTable): Promise<Pause | undefined> {
  const item = await table.get(CLUSTERS, ALL_CLUSTERS);
  return item && pauseIn(fieldsOf(item, SCHEMA));
}

/** In byte order of names. @throws TableError `SchemaTooNew`, `Corrupt` only for the pause of all. */
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
 * The same, a page at a time: thousands of specs need not be in memory at once. The pause of all comes in the first page.
 * @throws TableError `SchemaTooNew`, `Corrupt` only for the pause of all.
 */
export async function* clusterPages(table: KeyValueTable): AsyncGenerator<ClusterList> {
  const pages = table.pages?.(CLUSTERS, '') ?? [await table.list(CLUSTERS, '')];
  for await (const items of pages) yield clustersIn(items);
}

/** Decodes items of the partition of registrations. */
export function clustersIn(items: readonly Item[]): ClusterList {
  const clusters: ListedCluster[] = [];
  const unreadable: { name: string; error: TableError }[] = [];
  let pausedAll: Pause | undefined;
  for (const item of items) {
    if (item.key === ALL_CLUSTERS) {
      pausedAll = pauseIn(fieldsOf(item, SCHEMA));
      continue;
    }
    const cluster = readable(item);
    if (cluster instanceof TableError) unreadable.push({ name: item.key, error: cluster });
    else if (cluster !== undefined) clusters.push({ ...cluster, writtenAtMs: item.updatedAtMs });
  }
  return { clusters, unreadable, ...(pausedAll !== undefined && { pausedAll }) };
}

export function clusterContent(cluster: RegisteredCluster): Omit<NewItem, 'cluster' | 'key'> {
  const { spec, generation, rangesGeneration, paused, owner } = cluster;
  return {
    schema: SCHEMA,
    value: {
      spec: specValue(spec),
      generation,
      rangesGeneration,
      paused: paused && { ...paused },
      owner: owner && ownerValue(owner),
    },
  };
}

/** What remains of a name that is no longer registered: its last generation, and the package that removed it. */
export function tombstoneContent(generation: number, owner?: Owner): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { generation, owner: owner && ownerValue(owner) } };
}

export function pauseContent(pause: Pause | undefined): Omit<NewItem, 'cluster' | 'key'> {
  return { schema: SCHEMA, value: { paused: pause && { ...pause } } };
}

/** The generation, also of an item whose spec does not parse. */
export function generationOf(item: Item): number {
  return fieldsOf(item, SCHEMA).count('generation');
}

/** What an item records of a name. */
export interface Registration {
  readonly generation: number;
  /** Of what is registered, or of the package that removed it. */
  readonly owner?: Owner;
  /** Absent when the name is no longer registered. */
  readonly cluster?: RegisteredCluster;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRegistration(item: Item): Registration {
  const generation = generationOf(item);
  const fields = fieldsOf(item, SCHEMA, REGISTER_AGAIN);
  const owner = ownerIn(fields);
  const owned = { ...(owner !== undefined && { owner }) };
  const spec = fields.optionalFields('spec');
  if (spec === undefined) return { generation, ...owned };
  const paused = pauseIn(fields);
  return {
    generation,
    ...owned,
    cluster: {
      ...owned,
      spec: specIn(item, spec),
      generation,
      rangesGeneration: fields.count('rangesGeneration'),
      ...(paused !== undefined && { paused }),
    },
  };
}

function specIn(item: Item, fields: ItemFields): ClusterSpec {
  const name = fields.text('name');
  if (name !== item.key) {
    throw new TableError('Corrupt', `Item ${item.cluster}/${item.key} holds the spec of ${name}; register both again.`);
  }
  return specFrom(fieldsIn(item.value)?.['spec'] ?? null, fields);
}

function pauseIn(fields: ItemFields): Pause | undefined {
  const pause = fields.optionalFields('paused');
  return pause && { untilMs: pause.number('untilMs'), reason: pause.text('reason'), by: pause.text('by') };
}

function ownerIn(fields: ItemFields): Owner | undefined {
  const owner = fields.optionalFields('owner');
  const packaged = owner?.optionalFields('packaged');
  return (
    owner && {
      stack: owner.text('stack'),
      ...(packaged && {
        packaged: { startedAtMs: packaged.number('startedAtMs'), writtenAtMs: packaged.number('writtenAtMs') },
      }),
    }
  );
}

function ownerValue({ stack, packaged }: Owner): TableValue {
  return { stack, packaged: packaged && { ...packaged } };
}

function readable(item: Item): RegisteredCluster | TableError | undefined {
  try {
    return decodeRegistration(item).cluster;
  } catch (error) {
    if (error instanceof TableError) return error;
    throw error;
  }
}

/** As it is stored: a spec is plain data. */
export function specValue(spec: ClusterSpec): TableValue {
  return spec as unknown as TableValue;
}

/**
 * The spec in `value`, whose fields are `fields`. It was validated before it was registered; here each field is checked
 * to be present and of its type.
 * @throws TableError `Corrupt`.
 */
function specFrom(value: TableValue, fields: ItemFields): ClusterSpec {
  fields.text('name');
  fields.oneOf('mode', ['observe', 'enforce']);
  fields.oneOf('allocator', ['table', 'apiserver']);
  checkKubeconfig(fields.fields('kubeconfig'));
  fields.list('apiServers').forEach(checkApiServer);
  fields.texts('serviceClusterIPRanges', 1);
  fields.text('serviceNodePortRange');
  checkEndpoints(fields.fields('endpoints'));
  checkService(fields.fields('service'));
  fields.texts('systemNamespaces', 0);
  for (const loop of LOOPS) fields.fields('intervalSeconds').count(loop);
  fields.count('maxEventsPerPass');
  if (fieldsIn(value)?.['callerKeys'] !== undefined) fields.texts('callerKeys', 0);
  return value as unknown as ClusterSpec;
}

function checkKubeconfig(kubeconfig: ItemFields): void {
  const stored = kubeconfig.optionalText('secretsManager') ?? kubeconfig.optionalText('ssm');
  const webIdentity = kubeconfig.optionalFields('webIdentity');
  webIdentity?.text('server');
  webIdentity?.optionalText('certificateAuthorityData');
  if (stored === undefined && webIdentity === undefined) kubeconfig.text('file');
  kubeconfig.optionalText('roleArn');
  kubeconfig.optionalText('context');
}

function checkApiServer(server: ItemFields): void {
  if (server.optionalText('host') === undefined) server.text('address');
  server.oneOf('kind', ['server', 'shared']);
  const probe = server.fields('probe');
  probe.optionalText('url');
  probe.text('path');
  probe.optionalText('serverName');
  probe.flag('authenticate');
}

function checkEndpoints(endpoints: ItemFields): void {
  endpoints.oneOf('reconciler', ['lease', 'master-count', 'none']);
  endpoints.count('masterCount');
  endpoints.count('leaseSeconds');
  endpoints.flag('reconcilePorts');
  endpoints.list('extraPorts').forEach(checkPort);
}

function checkService(service: ItemFields): void {
  for (const field of ['port', 'securePort', 'nodePort']) service.count(field);
  service.list('extraPorts').forEach((port) => {
    checkPort(port);
    port.count('targetPort');
    port.optionalNumber('nodePort');
  });
  service.flag('reconcile');
}

function checkPort(port: ItemFields): void {
  port.text('name');
  port.oneOf('protocol', ['TCP', 'UDP', 'SCTP']);
  port.count('port');
}
