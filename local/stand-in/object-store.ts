import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { alreadyExists, conflict, notFound, type ServedResource } from './resources.ts';

/** A stored object: raw JSON with the common fields. */
export type StoredObject = KubernetesObject & { readonly [field: string]: unknown };

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/**
 * Stores objects as etcd and the generic registry do for an API server: by key, with one resource version for all
 * objects and optimistic concurrency. Objects are never changed in place.
 */
export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>();
  #version = 1;

  get(resource: ServedResource, namespace: string | undefined, name: string): StoredObject {
    const found = this.find(resource, namespace, name);
    if (found === undefined) throw notFound(resource, name);
    return found;
  }

  find(resource: ServedResource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#objects.get(keyOf(resource, namespace, name));
  }

  insert(resource: ServedResource, object: StoredObject): StoredObject {
    const { namespace, name } = object.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.has(key)) throw alreadyExists(resource, name);
    return this.#put(key, object);
  }

  /** Replaces the object that was read as `previous`. An unchanged object is not written. */
  replace(resource: ServedResource, previous: StoredObject, next: StoredObject): StoredObject {
    const { namespace, name } = previous.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.get(key) !== previous) throw conflict(resource, name, MODIFIED);
    if (sameContent(previous, next)) return previous;
    return this.#put(key, next);
  }

  remove(resource: ServedResource, object: StoredObject): void {
    const { namespace, name } = object.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.get(key) !== object) throw conflict(resource, name, MODIFIED);
    this.#version++;
    this.#objects.delete(key);
  }

  list(
    resource: ServedResource,
    namespace: string | undefined,
    matches: (object: StoredObject) => boolean,
  ): readonly StoredObject[] {
    const prefix = keyOf(resource, namespace, '');
    return [...this.#objects]
      .filter(([key, object]) => key.startsWith(prefix) && matches(object))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object);
  }

  get version(): string {
    return String(this.#version);
  }

  #put(key: string, object: StoredObject): StoredObject {
    this.#version++;
    const metadata: KubernetesObject['metadata'] = { ...object.metadata, resourceVersion: String(this.#version) };
    const stored = { ...object, metadata };
    this.#objects.set(key, stored);
    return stored;
  }
}

function keyOf(resource: ServedResource, namespace: string | undefined, name: string): string {
  const prefix = `${resource.apiVersion}/${resource.plural}/`;
  if (!resource.namespaced) return prefix + name;
  return namespace === undefined ? prefix : `${prefix}${namespace}/${name}`;
}

function sameContent(a: StoredObject, b: StoredObject): boolean {
  const content = ({ metadata, ...rest }: StoredObject) => {
    const { resourceVersion: _version, managedFields: _managers, ...kept } = metadata;
    return { ...rest, metadata: kept };
  };
  return isDeepStrictEqual(content(a), content(b));
}
