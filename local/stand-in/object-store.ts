import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject, ObjectMeta } from '../../lib/cluster/kubernetes-objects.ts';
import type { Resource } from './resources.ts';
import { alreadyExists, badRequest, conflict, notFound, StatusError } from './status.ts';

/** Anything stored: raw JSON with the fields that every object has. */
export type StoredObject = KubernetesObject & { readonly [field: string]: unknown };

export interface Page {
  readonly items: readonly StoredObject[];
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remaining: number;
}

/** Lists whose later pages can still be asked for. Older ones are gone, as after a compaction of etcd. */
const SNAPSHOTS_KEPT = 64;

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/**
 * What etcd and the generic registry do for an API server: objects by key, one resource version for all of them,
 * optimistic concurrency, and lists that stay consistent over their pages. Objects are never changed in place.
 */
export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>();
  readonly #snapshots = new Map<string, readonly StoredObject[]>();
  #version = 1;

  get(resource: Resource, namespace: string | undefined, name: string): StoredObject {
    const found = this.find(resource, namespace, name);
    if (found === undefined) throw notFound(resource, name);
    return found;
  }

  find(resource: Resource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#objects.get(keyOf(resource, namespace, name));
  }

  insert(resource: Resource, object: StoredObject): StoredObject {
    const { namespace, name } = object.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.has(key)) throw alreadyExists(resource, name);
    return this.#put(key, object);
  }

  /** Replaces the object that `previous` was read as; nothing is written when nothing changed. */
  replace(resource: Resource, previous: StoredObject, next: StoredObject): StoredObject {
    const { namespace, name } = previous.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.get(key) !== previous) throw conflict(resource, name, MODIFIED);
    if (sameContent(previous, next)) return previous;
    return this.#put(key, next);
  }

  remove(resource: Resource, object: StoredObject): void {
    const { namespace, name } = object.metadata;
    const key = keyOf(resource, namespace, name);
    if (this.#objects.get(key) !== object) throw conflict(resource, name, MODIFIED);
    this.#version++;
    this.#objects.delete(key);
  }

  list(
    resource: Resource,
    namespace: string | undefined,
    matches: (object: StoredObject) => boolean,
  ): readonly StoredObject[] {
    const prefix = keyOf(resource, namespace, '');
    return [...this.#objects]
      .filter(([key, object]) => key.startsWith(prefix) && matches(object))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object);
  }

  /** One page of a list; `limit` 0 is all. */
  page(items: () => readonly StoredObject[], limit: number, token: string | undefined): Page {
    const { version, start } = token === undefined ? { version: String(this.#version), start: 0 } : parseToken(token);
    const all = token === undefined ? items() : this.#snapshots.get(version);
    if (all === undefined) throw expired();
    const end = limit > 0 ? Math.min(start + limit, all.length) : all.length;
    const more = end < all.length;
    if (more) this.#remember(version, all);
    return {
      items: all.slice(start, end),
      resourceVersion: version,
      remaining: all.length - end,
      ...(more && { continue: Buffer.from(JSON.stringify({ version, start: end })).toString('base64url') }),
    };
  }

  /** Forgets every list that is still being paged through: their next page is a 410. */
  compact(): void {
    this.#snapshots.clear();
  }

  #put(key: string, object: StoredObject): StoredObject {
    this.#version++;
    const metadata: ObjectMeta = { ...object.metadata, resourceVersion: String(this.#version) };
    const stored = { ...object, metadata };
    this.#objects.set(key, stored);
    return stored;
  }

  #remember(version: string, items: readonly StoredObject[]): void {
    this.#snapshots.set(version, items);
    const [oldest] = this.#snapshots.keys();
    if (this.#snapshots.size > SNAPSHOTS_KEPT && oldest !== undefined) this.#snapshots.delete(oldest);
  }
}

function keyOf(resource: Resource, namespace: string | undefined, name: string): string {
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

function parseToken(token: string): { version: string; start: number } {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (typeof parsed === 'object' && parsed !== null && 'version' in parsed && 'start' in parsed) {
      return { version: String(parsed.version), start: Number(parsed.start) };
    }
  } catch {
    // Not a token of this server; said below.
  }
  throw badRequest('invalid continue token: it is not one that this server gave');
}

function expired(): StatusError {
  return new StatusError(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. Start a new list without it.',
  );
}
