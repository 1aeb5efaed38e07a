import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { alreadyExists, conflict, notFound, type ServedResource } from './resources.ts';

/** A stored object: raw JSON with the common fields. */
export type StoredObject = KubernetesObject & { readonly [field: string]: unknown };

/** Stores objects as etcd does: one resource version for all, optimistic concurrency, and no change of an object in place. */
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
    if (this.find(resource, namespace, name)) throw alreadyExists(resource, name);
    return this.#put(keyOf(resource, namespace, name), object);
  }

  /** Replaces the object that was read as `previous`. An unchanged object is not written. */
  replace(resource: ServedResource, previous: StoredObject, next: StoredObject): StoredObject {
    const key = this.#currentKey(resource, previous);
    return sameContent(previous, next) ? previous : this.#put(key, next);
  }

  remove(resource: ServedResource, object: StoredObject): void {
    this.#objects.delete(this.#currentKey(resource, object));
    this.#version++;
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

  /** @throws StatusError if the object was changed or removed since it was read */
  #currentKey(resource: ServedResource, object: StoredObject): string {
    const { namespace, name } = object.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.get(key) !== object) throw conflict(resource, name);
    return key;
  }

  #put(key: string, object: StoredObject): StoredObject {
    this.#version++;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: this.version } };
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
