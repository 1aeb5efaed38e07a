import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { HttpRequest } from '../../lib/kubernetes/http-client.ts';
import type { StoredObject } from '../../local/stand-in/object-store.ts';
import { parsedObject, patched, selectorOf } from '../../local/stand-in/requests.ts';
import {
  alreadyExists,
  conflict,
  notFound,
  requestedTarget,
  type ServedResource,
  StatusError,
  type Target,
} from '../../local/stand-in/resources.ts';

export interface ServerReply {
  readonly status: number;
  readonly body: object | string;
  /** The time of the reply by the server's clock. */
  readonly date?: string;
}

export interface ObjectWrite {
  /** The plural of the kind, such as `endpoints`. */
  readonly kind: string;
  readonly name: string;
  readonly by: string;
  /** The object before the write. */
  readonly before: KubernetesObject | undefined;
}

/**
 * An in-memory API server without validation, namespaces, defaults or allocation: it stores what is written. Writes are
 * conditional, and selectors, patches and refusals are those of the stand-in.
 */
export class ObjectServer {
  readonly #objects: Map<string, StoredObject>;
  #version: number;
  onWrite: (write: ObjectWrite) => void = () => {};
  /** The clock of the API server. Without it, objects have no time of creation. */
  nowMs: (() => number) | undefined;

  /** @param from a server whose objects are copied */
  constructor(from?: ObjectServer) {
    this.#objects = new Map(from === undefined ? [] : from.#objects);
    this.#version = from === undefined ? 100 : from.#version;
  }

  find<T extends KubernetesObject>(kind: string, namespace: string, name: string): T | undefined {
    return this.#objects.get(keyOf(kind, namespace, name)) as T | undefined;
  }

  /** Returns the objects of a kind in all namespaces. */
  all(kind: string): StoredObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object);
  }

  /** Writes an object without conditions, as another writer. */
  place(kind: string, object: KubernetesObject, by = 'kubectl'): KubernetesObject {
    const { namespace = '', name } = object.metadata;
    this.#version++;
    const before = this.find<StoredObject>(kind, namespace, name);
    const uid = before?.metadata.uid ?? object.metadata.uid ?? `uid-${this.#version}`;
    const createdAt = this.nowMs && new Date(Math.floor(this.nowMs() / 1000) * 1000).toISOString();
    const creationTimestamp = object.metadata.creationTimestamp ?? before?.metadata.creationTimestamp ?? createdAt;
    const time = new Date(this.#version * 1000).toISOString();
    const others = (object.metadata.managedFields ?? []).filter(({ manager }) => manager !== by);
    const managedFields = [...others, { manager: by, operation: 'Update', time }];
    const metadata = {
      ...object.metadata,
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      uid,
      resourceVersion: String(this.#version),
      managedFields,
    };
    const stored = { ...object, metadata };
    this.#objects.set(keyOf(kind, namespace, name), stored);
    this.onWrite({ kind, name, by, before });
    return stored;
  }

  remove(kind: string, namespace: string, name: string, by = 'kubectl'): void {
    this.#version++;
    const before = this.find(kind, namespace, name);
    this.#objects.delete(keyOf(kind, namespace, name));
    this.onWrite({ kind, name, by, before });
  }

  answer(request: HttpRequest, by: string): ServerReply {
    try {
      return this.#answer(request, by);
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status.code, body: error.status };
      throw error;
    }
  }

  #answer({ method, path, body = '', headers }: HttpRequest, by: string): ServerReply {
    const { pathname, searchParams } = new URL(path, 'http://server');
    const target = requestedTarget(pathname);
    if (target === undefined) throw new Error(`no API of this server: ${path}`);
    const { resource, namespace = '', name } = target;
    const kind = resource.plural;
    if (name === undefined) {
      return method === 'POST' ? this.#create(target, body, by) : this.#list(target, searchParams);
    }
    const current = this.find<StoredObject>(kind, namespace, name);
    if (current === undefined) throw notFound(resource, name);
    if (method === 'GET') return { status: 200, body: current };
    const sent = method === 'PATCH' ? patched(current, body, headers['content-type'] ?? '') : JSON.parse(body);
    requireCurrent(resource, current, sent.preconditions ?? sent.metadata);
    if (method !== 'DELETE') return { status: 200, body: this.place(kind, sent, by) };
    this.remove(kind, namespace, name, by);
    return { status: 200, body: { kind: 'Status', apiVersion: 'v1', status: 'Success' } };
  }

  #list({ resource, namespace }: Target, query: URLSearchParams): ServerReply {
    const { kind, apiVersion, plural } = resource;
    const isSelected = selectorOf(query);
    const items = this.all(plural).filter(
      (object) => (namespace === undefined || object.metadata.namespace === namespace) && isSelected(object),
    );
    const metadata = { resourceVersion: String(this.#version) };
    return { status: 200, body: { apiVersion, kind: `${kind}List`, metadata, items } };
  }

  #create({ resource, namespace = '' }: Target, body: string, by: string): ServerReply {
    const object = parsedObject(body);
    const { name } = object.metadata;
    if (this.find(resource.plural, namespace, name) !== undefined) throw alreadyExists(resource, name);
    return { status: 201, body: this.place(resource.plural, object, by) };
  }
}

function requireCurrent(resource: ServedResource, current: StoredObject, wanted: KubernetesObject['metadata']): void {
  const { name, uid, resourceVersion } = current.metadata;
  if (wanted.uid !== uid || wanted.resourceVersion !== resourceVersion) throw conflict(resource, name);
}

function keyOf(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}
