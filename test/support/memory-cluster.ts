import { FIELD_MANAGER, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import {
  type ClusterPort,
  type ControlPlane,
  type ObjectRef,
  RESOURCES,
  refOf,
} from '../../lib/kubernetes/cluster-port.ts';
import type { Transport } from '../../lib/kubernetes/transport.ts';
import { accessReviewReply } from '../../local/stand-in/kubectl.ts';
import { requestedTarget } from '../../local/stand-in/resources.ts';
import { ObjectServer } from './object-server.ts';

export const CONTROL_PLANE: ControlPlane = { id: 'control-plane', confirm: () => Promise.resolve(true) };

/** An in-memory API server with a Kubernetes client. A test can read the calls of the client and make its writes fail. */
export interface MemoryCluster {
  readonly port: ClusterPort;
  /** The writes in order, such as `create endpoints` and `update endpointslices`. */
  readonly writes: string[];
  /** The reads in order, such as `get services` and `list endpointslices`. */
  readonly reads: string[];
  /** Stores an object as another writer does: with another resourceVersion and without a call of the client. */
  readonly place: <T extends KubernetesObject>(object: T, manager?: string) => void;
  readonly remove: (ref: ObjectRef) => void;
  readonly find: <T extends KubernetesObject>(ref: ObjectRef) => T | undefined;
  /** Runs before each write except a patch. It may throw or change objects. If it returns an answer, the write does not happen. */
  beforeWrite: ((verb: string, object: KubernetesObject) => Answer | Promise<Answer>) | undefined;
}

type Answer = WriteAnswer | undefined;

export type WriteAnswer =
  | { readonly outcome: 'invalid' | 'namespaceUnavailable'; readonly message: string }
  | { readonly outcome: 'alreadyExists' | 'conflict' };

const VERBS = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

/** @param nowMs the clock of the API server. Default: its replies have no `Date` */
export function memoryCluster(objects: readonly KubernetesObject[] = [], nowMs?: () => number): MemoryCluster {
  const server = new ObjectServer();
  const transport: Transport = async (request) => {
    const review = accessReviewReply(request.method, request.path, request.body ?? '');
    if (review !== undefined) return { status: 201, headers: JSON_TYPE, body: [Buffer.from(JSON.stringify(review))] };
    const { status, body } = server.answer(request, FIELD_MANAGER);
    record(request, status);
    const date = nowMs && { date: new Date(nowMs()).toUTCString() };
    return { status, headers: { ...JSON_TYPE, ...date }, body: [Buffer.from(JSON.stringify(body))] };
  };
  const record = ({ method, path }: Parameters<Transport>[0], status: number) => {
    const target = requestedTarget(path.replace(/\?.*/, ''));
    const plural = target?.resource.plural;
    if (method === 'GET') cluster.reads.push(`${target?.name === undefined ? 'list' : 'get'} ${plural}`);
    else if (status < 300) cluster.writes.push(`${VERBS[method]} ${plural}`);
  };
  const deadline = new AbortController().signal;
  const client = clusterPort({ transport, server: 'https://memory', deadline, userAgent: 'test' });
  const answerTo = async (verb: string, object: KubernetesObject) => cluster.beforeWrite?.(verb, object);

  const cluster: MemoryCluster = {
    port: {
      ...client,
      create: async (object) => ((await answerTo('create', object)) as undefined) ?? client.create(object),
      update: async (object) => ((await answerTo('update', object)) as undefined) ?? client.update(object),
      delete: async (object) =>
        (await answerTo('delete', object))?.outcome === 'conflict' ? 'conflict' : client.delete(object),
    },
    writes: [],
    reads: [],
    beforeWrite: undefined,
    place: (object, by = 'another-writer') => void server.place(RESOURCES[refOf(object).kind].plural, object, by),
    remove: ({ kind, namespace = '', name }) => server.remove(RESOURCES[kind].plural, namespace, name),
    find: ({ kind, namespace = '', name }) => server.find(RESOURCES[kind].plural, namespace, name),
  };
  for (const object of objects) cluster.place(object, 'an-earlier-writer');
  return cluster;
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** Makes the API server refuse Services until their namespace and a ServiceCIDR exist, as one without its start-up hooks does. */
export function turnHooksOff(cluster: MemoryCluster): void {
  cluster.beforeWrite = (verb, { kind }) => {
    if (verb !== 'create' || kind !== 'Service') return undefined;
    if (cluster.find({ kind: 'Namespace', name: 'default' }) === undefined) {
      return { outcome: 'namespaceUnavailable', message: 'namespaces "default" not found' };
    }
    const isAllocatable = cluster.find({ kind: 'ServiceCIDR', name: 'kubernetes' }) !== undefined;
    return isAllocatable ? undefined : { outcome: 'invalid', message: 'no ServiceCIDR' };
  };
}
