import { randomUUID } from 'node:crypto';
import type { LocalReply } from '../local-server.ts';
import { accessReviewReply, discoveryReply, tableOf } from './kubectl.ts';
import { ObjectStore, type StoredObject } from './object-store.ts';
import { jsonFieldsIn, parsedJson, parsedObject, patched, selectorOf } from './requests.ts';
import {
  badRequest,
  conflict,
  ENDPOINTS,
  NAMESPACES,
  requestedTarget,
  SERVED_RESOURCES,
  SERVICES,
  type ServedResource,
  StatusError,
  type Target,
} from './resources.ts';
import {
  asService,
  claimsOf,
  defaulted,
  releaseClaims,
  type ServiceAllocator,
  storeAllocated,
  withoutUnusedPorts,
} from './service-storage.ts';
import { validate } from './validation.ts';

export interface StandInRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Call extends Target {
  readonly query: URLSearchParams;
  readonly body: string;
  readonly contentType: string;
  readonly accept: string;
  readonly manager: string;
}

const NEW_NAMESPACE = { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } };
const VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.3-stand-in', platform: 'linux/amd64' };

/**
 * An API server in this process with the kinds that the loops use. It passes the contract suite of the real kube-apiserver.
 * It has no other API, no paged lists, no watch, no dry run, no protobuf and no persistent storage.
 */
export class StandInApiServer {
  readonly store = new ObjectStore();
  readonly #allocation: ServiceAllocator;
  readonly #nowMs: () => number;
  /** False if `/readyz` answers in the same way as a server that is shutting down. */
  ready = true;

  constructor(allocation: ServiceAllocator, nowMs: () => number) {
    this.#allocation = allocation;
    this.#nowMs = nowMs;
    const call = { resource: NAMESPACES, manager: 'stand-in' };
    for (const name of ['kube-system', 'kube-public']) {
      this.store.insert(NAMESPACES, this.#completed(call, { metadata: { name } }));
    }
  }

  async handle(request: StandInRequest): Promise<LocalReply> {
    try {
      return await this.#route(request);
    } catch (error) {
      if (error instanceof StatusError) return reply(error.status.code, error.status);
      throw error;
    }
  }

  async #route({ method, path, headers, body = '' }: StandInRequest): Promise<LocalReply> {
    const { pathname, searchParams: query } = new URL(path, 'http://stand-in');
    if (['/readyz', '/healthz', '/livez'].includes(pathname)) return this.#health(pathname);
    if (pathname === '/version') return reply(200, VERSION);
    const review = accessReviewReply(method, pathname, body);
    if (review !== undefined) return reply(201, review);
    const discovered = method === 'GET' ? discoveryReply(pathname) : undefined;
    if (discovered !== undefined) return reply(200, discovered);
    const target = requestedTarget(pathname);
    if (target === undefined) return textReply(404, '404 page not found\n');
    if (query.has('dryRun')) throw badRequest('the stand-in API server has no dry run');
    // Any `watch` but `false` and `0` is a watch, as in the real API.
    if (!/^(false|0)$/i.test(query.get('watch') ?? '0')) throw badRequest('the stand-in API server has no watch');
    const { 'content-type': contentType = 'application/json', accept = '', 'user-agent': agent = 'unknown' } = headers;
    const manager = query.get('fieldManager') ?? agent.split('/', 1).join();
    return this.#dispatch(method, { ...target, query, body, contentType, accept, manager });
  }

  async #dispatch(method: string, call: Call): Promise<LocalReply> {
    if (method === 'GET') return reply(200, this.#read(call));
    if (call.name === undefined) {
      if (method === 'POST') return reply(201, await this.#create(call));
    } else {
      const { body, contentType } = call;
      if (method === 'PUT') return reply(200, await this.#update(call, () => parsedObject(body)));
      if (method === 'PATCH')
        return reply(200, await this.#update(call, (object) => patched(object, body, contentType)));
      if (method === 'DELETE') return reply(200, await this.#delete(call));
    }
    throw new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
  }

  #health(path: string): LocalReply {
    if (path !== '/readyz' || this.ready) return textReply(200, 'ok');
    return textReply(500, '[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n');
  }

  #read({ resource, namespace, name, query, accept }: Call): object {
    const object = name === undefined ? undefined : this.store.get(resource, namespace, name);
    const items = object === undefined ? this.store.list(resource, namespace, selectorOf(query)) : [object];
    const metadata = { resourceVersion: this.store.version };
    if (/as=Table/.test(accept)) return tableOf(resource, items, metadata, this.#nowMs());
    return object ?? { kind: `${resource.kind}List`, apiVersion: resource.apiVersion, metadata, items };
  }

  async #create(call: Call): Promise<StoredObject> {
    const { resource, namespace } = call;
    const object = this.#completed(call, parsedObject(call.body));
    if (namespace !== undefined) this.store.get(NAMESPACES, undefined, namespace);
    validate(resource, object, undefined);
    if (resource !== SERVICES) return this.store.insert(resource, object);

    const service = defaulted(asService(object));
    if (this.store.find(resource, namespace, object.metadata.name)) return this.store.insert(resource, service);
    return storeAllocated(service, undefined, this.#allocation, (allocated) => this.store.insert(resource, allocated));
  }

  async #update(call: Call, change: (previous: StoredObject) => StoredObject): Promise<StoredObject> {
    const { resource, namespace, name = '' } = call;
    const previous = this.store.get(resource, namespace, name);
    const sent = change(previous);
    if (sent.metadata.name !== name) {
      throw badRequest(`the name of the object (${sent.metadata.name}) does not match the name on the URL (${name})`);
    }
    const version = sent.metadata.resourceVersion;
    if (version && version !== previous.metadata.resourceVersion) throw conflict(resource, name);
    const next = this.#completed(call, sent, previous);
    validate(resource, next, previous);
    return resource === SERVICES ? this.#updateService(previous, next) : this.store.replace(resource, previous, next);
  }

  async #updateService(previous: StoredObject, sent: StoredObject): Promise<StoredObject> {
    const before = asService(previous);
    const after = asService(sent);
    const { clusterIP = '', clusterIPs = [] } = before.spec;
    const kept = { ...(clusterIP && { clusterIP, clusterIPs }), ...withoutUnusedPorts(before.spec, after.spec) };
    const next = defaulted({ ...after, spec: kept });
    const held = claimsOf(before);
    const stored = await storeAllocated(next, before, this.#allocation, (allocated) =>
      this.store.replace(SERVICES, previous, allocated),
    );
    const used = claimsOf(asService(stored));
    const unused = {
      addresses: held.addresses.filter((address) => !used.addresses.includes(address)),
      ports: held.ports.filter((port) => !used.ports.includes(port)),
    };
    await releaseClaims(unused, this.#allocation);
    return stored;
  }

  async #delete({ resource, namespace, name = '', body }: Call): Promise<object> {
    const object = this.store.get(resource, namespace, name);
    const preconditions = jsonFieldsIn(jsonFieldsIn(body === '' ? {} : parsedJson(body))['preconditions']);
    for (const field of ['uid', 'resourceVersion'] as const) {
      const { [field]: wanted = object.metadata[field] } = preconditions;
      if (wanted !== object.metadata[field]) {
        const cause = `the ${field} in the precondition (${wanted}) does not match the ${field} in record (${object.metadata[field]})`;
        throw conflict(resource, name, `${cause}. The object might have been deleted and then recreated`);
      }
    }
    if (resource === NAMESPACES) return this.#finalizeNamespace(object);
    await this.#remove(resource, object);
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
  }

  async #remove(resource: ServedResource, object: StoredObject): Promise<void> {
    this.store.remove(resource, object);
    if (resource !== SERVICES) return;
    const { namespace, name } = object.metadata;
    const endpoints = this.store.find(ENDPOINTS, namespace, name);
    if (endpoints !== undefined) this.store.remove(ENDPOINTS, endpoints);
    await releaseClaims(claimsOf(asService(object)), this.#allocation);
  }

  /** Removes the namespace and everything in it at once. In a real cluster, the namespace controller does this later. */
  async #finalizeNamespace(namespace: StoredObject): Promise<StoredObject> {
    const { name } = namespace.metadata;
    this.store.remove(NAMESPACES, namespace);
    for (const resource of SERVED_RESOURCES.filter(({ namespaced }) => namespaced)) {
      for (const object of this.store.list(resource, name, () => true)) {
        if (this.store.find(resource, name, object.metadata.name) === object) await this.#remove(resource, object);
      }
    }
    const metadata = { ...namespace.metadata, deletionTimestamp: this.#timestamp() };
    return { ...namespace, metadata, status: { phase: 'Terminating' } };
  }

  /** Returns a sent object with the fields that an API server sets. */
  #completed(
    { resource, namespace, manager }: Target & Pick<Call, 'manager'>,
    sent: StoredObject,
    previous?: StoredObject,
  ): StoredObject {
    const { uid = randomUUID(), creationTimestamp = this.#timestamp(), managedFields = [] } = previous?.metadata ?? {};
    const others = managedFields.filter((entry) => entry.manager !== manager);
    const metadata = {
      ...sent.metadata,
      ...namespaceFor(namespace, sent),
      uid,
      creationTimestamp,
      managedFields: [...others, { manager, operation: 'Update', time: this.#timestamp() }],
    };
    const isNewNamespace = resource === NAMESPACES && previous === undefined;
    return {
      ...(isNewNamespace && NEW_NAMESPACE),
      ...sent,
      apiVersion: resource.apiVersion,
      kind: resource.kind,
      metadata,
    };
  }

  #timestamp(): string {
    return `${new Date(this.#nowMs()).toISOString().slice(0, 19)}Z`;
  }
}

/** Returns the namespace of the request, if the request has one, as metadata. Throws if the object names another namespace. */
function namespaceFor(namespace: string | undefined, { metadata }: StoredObject): { readonly namespace?: string } {
  if (namespace === undefined) return {};
  if ((metadata.namespace ?? namespace) === namespace) return { namespace };
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

function reply(status: number, body: object): LocalReply {
  return { status, headers: { 'content-type': 'application/json' }, body: `${JSON.stringify(body)}\n` };
}

function textReply(status: number, body: string): LocalReply {
  return { status, headers: { 'content-type': 'text/plain' }, body };
}
