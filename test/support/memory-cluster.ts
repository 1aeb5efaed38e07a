import type { Json, KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { isRecord } from '../../lib/cluster/values.ts';
import {
  type ClusterPort,
  type CreateResult,
  type DeleteResult,
  type Kind,
  type ObjectRef,
  RESOURCES,
  refOf,
  type UpdateResult,
} from '../../lib/kubernetes/cluster-port.ts';
import { ipAddressInJson, serviceInJson } from '../../lib/kubernetes/item-readers.ts';
import { isSelected } from '../repair/services.ts';
import { frozen } from './frozen.ts';

/** An in-memory cluster with a Kubernetes client. A test can read the calls of the client and make its writes fail. */
export interface MemoryCluster {
  readonly port: ClusterPort;
  /** The writes in order, such as `create endpoints` and `update endpointslices`. */
  readonly writes: string[];
  /** The reads in order, such as `get services` and `list endpointslices`. */
  readonly reads: string[];
  readonly created: KubernetesObject[];
  /** Stores an object as another writer does: with another resourceVersion and without a call of the client. */
  readonly place: <T extends KubernetesObject>(object: T, manager?: string) => void;
  readonly remove: (ref: ObjectRef) => void;
  readonly find: <T extends KubernetesObject>(ref: ObjectRef) => T | undefined;
  /** Called before each write. It may throw or change objects. If it returns an answer, the write does not happen. */
  beforeWrite: ((verb: string, object: KubernetesObject) => WriteAnswer | undefined) | undefined;
}

export type WriteAnswer =
  | { readonly outcome: 'invalid' | 'namespaceUnavailable'; readonly message: string }
  | { readonly outcome: 'alreadyExists' | 'conflict' };

const MANAGER = 'kube-bootstrap-controller';

/**
 * Returns a cluster without validation, namespaces or defaults: it stores what is written. Stored objects are frozen, so that no
 * caller can change them.
 */
export function memoryCluster(objects: readonly KubernetesObject[] = []): MemoryCluster {
  const stored = new Map<string, KubernetesObject>();
  let version = 0;

  const save = <T extends KubernetesObject>(object: T, by: string): T => {
    version += 1;
    const key = keyOf(refOf(object));
    const uid = stored.get(key)?.metadata.uid ?? `uid-${version}`;
    const time = new Date(version * 1000).toISOString();
    const others = (object.metadata.managedFields ?? []).filter((entry) => entry.manager !== by);
    const managedFields = [...others, { manager: by, operation: 'Update', time }];
    const metadata = { ...object.metadata, uid, resourceVersion: String(version), managedFields };
    const saved = frozen(structuredClone({ ...object, metadata }));
    stored.set(key, saved);
    return saved;
  };

  const isCurrent = ({ metadata }: KubernetesObject, current: KubernetesObject): boolean =>
    metadata.resourceVersion === current.metadata.resourceVersion;

  const record = (verb: string, object: KubernetesObject): void => {
    cluster.writes.push(`${verb} ${RESOURCES[refOf(object).kind].plural}`);
  };

  const port: ClusterPort = {
    async get<T extends KubernetesObject>(ref: ObjectRef): Promise<T | undefined> {
      cluster.reads.push(`get ${RESOURCES[ref.kind].plural}`);
      return cluster.find<T>(ref);
    },

    async list<T extends KubernetesObject>(kind: Kind, namespace?: string, labelSelector?: string): Promise<T[]> {
      cluster.reads.push(`list ${RESOURCES[kind].plural}`);
      const [label = '', value] = (labelSelector ?? '').split('=');
      return [...stored.values()]
        .filter(
          (object) => object.kind === kind && (namespace === undefined || object.metadata.namespace === namespace),
        )
        .filter(({ metadata }) => labelSelector === undefined || metadata.labels?.[label] === value) as T[];
    },

    async create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>> {
      const answer = cluster.beforeWrite?.('create', object);
      if (answer !== undefined) return answer as CreateResult<T>;
      if (stored.has(keyOf(refOf(object)))) return { outcome: 'alreadyExists' };
      record('create', object);
      cluster.created.push(object);
      return { outcome: 'created', object: save(object, MANAGER) };
    },

    async update<T extends KubernetesObject>(object: T): Promise<UpdateResult<T>> {
      const answer = cluster.beforeWrite?.('update', object);
      if (answer !== undefined) return answer as UpdateResult<T>;
      const current = stored.get(keyOf(refOf(object)));
      if (current === undefined) return { outcome: 'notFound' };
      if (!isCurrent(object, current)) return { outcome: 'conflict' };
      record('update', object);
      return { outcome: 'updated', object: save(object, MANAGER) };
    },

    async mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<UpdateResult<T>> {
      const current = stored.get(keyOf(ref));
      if (current === undefined) return { outcome: 'notFound' };
      const changed = merged(current as unknown as Json, patch) as unknown as T;
      if (!isCurrent(changed, current)) return { outcome: 'conflict' };
      record('patch', changed);
      return { outcome: 'updated', object: save(changed, MANAGER) };
    },

    async delete(object: KubernetesObject): Promise<DeleteResult> {
      const answer = cluster.beforeWrite?.('delete', object);
      if (answer?.outcome === 'conflict') return 'conflict';
      const ref = refOf(object);
      const current = stored.get(keyOf(ref));
      if (current === undefined) return 'notFound';
      if (!isCurrent(object, current) || object.metadata.uid !== current.metadata.uid) return 'conflict';
      record('delete', object);
      stored.delete(keyOf(ref));
      return 'deleted';
    },

    async *services(selection) {
      const services = (await port.list('Service', undefined)).map(serviceInJson);
      yield* services.filter((service) => isSelected(service, selection));
    },

    async *ipAddresses() {
      for (const object of await port.list('IPAddress', undefined)) yield ipAddressInJson(object);
    },
  };

  const cluster: MemoryCluster = {
    port,
    writes: [],
    reads: [],
    created: [],
    beforeWrite: undefined,
    place: (object, by = 'somebody-else') => {
      save(object, by);
    },
    remove: (ref) => {
      stored.delete(keyOf(ref));
    },
    find: <T extends KubernetesObject>(ref: ObjectRef) => stored.get(keyOf(ref)) as T | undefined,
  };
  for (const object of objects) save(object, 'whoever-was-there-before');
  return cluster;
}

/** Returns the result of a JSON merge patch that removes no fields. */
function merged(target: Json | undefined, patch: Json): Json {
  if (!isRecord(patch) || !isRecord(target)) return patch;
  const fields = Object.entries(patch).map(([name, value]) => [name, merged(target[name] as Json, value as Json)]);
  return { ...target, ...Object.fromEntries(fields) } as Json;
}

function keyOf({ kind, namespace, name }: ObjectRef): string {
  return `${kind}/${namespace ?? ''}/${name}`;
}
