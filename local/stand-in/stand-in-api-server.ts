import { randomUUID } from 'node:crypto';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { LocalReply } from '../loopback-server.ts';
import { accessReviewReply, discoveryReply } from './discovery.ts';
import { jsonFieldsIn, parsedJson } from './json.ts';
import { MODIFIED, ObjectStore, type StoredObject } from './object-store.ts';
import { parsedObject, patched, selectorOf } from './requests.ts';
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
import { tableOf } from './tables.ts';
import { validate } from './validation.ts';

export interface StandInRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Call {
  readonly target: Target;
  readonly query: URLSearchParams;
  readonly body: string;
  readonly contentType: string;
  readonly accept: string;
  readonly manager: string;
}

/** Returns a requested feature that the stand-in lacks. Any `watch` but `false` and `0` is a watch, as in the real API. */
function missingIn(query: URLSearchParams): string | undefined {
  if (query.has('watch') && !/^(false|0)$/i.test(query.get('watch') ?? '')) return 'watch';
  return query.has('dryRun') ? 'dry run' : undefined;
}

const VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.3-stand-in', platform: 'linux/amd64' };

/**
 * An API server in this process: the kinds that the loops use, and the requests of kubectl that show and write these
 * kinds. It has the outcomes of a real API server (resource versions and conflicts, Status errors, allocation on
 * create). It has no other API, no paged lists, no watch, no dry run, no protobuf and no persistent storage. It
 * passes the contract suite of the real kube-apiserver.
 */
export class StandInApiServer {
  readonly store = new ObjectStore();
  readonly #allocation: ServiceAllocator;
  readonly #nowMs: () => number;
  /** False if `/readyz` answers in the same way as a server that is shutting down. */
  ready = true;

  constructor({ allocation, nowMs }: { readonly allocation: ServiceAllocator; readonly nowMs: () => number }) {
    this.#allocation = allocation;
    this.#nowMs = nowMs;
    const call = { target: { resource: NAMESPACES }, manager: 'stand-in' };
    for (const name of ['kube-system', 'kube-public']) {
      this.store.insert(NAMESPACES, this.#created(call, { metadata: { name } }));
    }
  }

  async handle(request: StandInRequest): Promise<LocalReply> {
    try {
      return await this.#route(request);
    } catch (error) {
      if (error instanceof StatusError) return reply(error.httpStatus, error.toStatus());
      throw error;
    }
  }

  async #route(request: StandInRequest): Promise<LocalReply> {
    const url = new URL(request.path, 'http://stand-in');
    if (['/readyz', '/healthz', '/livez'].includes(url.pathname)) return this.#health(url.pathname);
    if (url.pathname === '/version') return reply(200, VERSION);
    const review = accessReviewReply(request.method, url.pathname, request.body ?? '');
    if (review !== undefined) return reply(201, review);
    const discovered = request.method === 'GET' ? discoveryReply(url.pathname) : undefined;
    if (discovered !== undefined) return reply(200, discovered);
    const target = requestedTarget(url.pathname);
    if (target === undefined)
      return { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found\n' };
    const call: Call = {
      target,
      query: url.searchParams,
      body: request.body ?? '',
      contentType: request.headers['content-type'] ?? 'application/json',
      accept: request.headers['accept'] ?? '',
      manager: url.searchParams.get('fieldManager') ?? request.headers['user-agent']?.split('/')[0] ?? 'unknown',
    };
    const missing = missingIn(url.searchParams);
    if (missing !== undefined) throw badRequest(`the stand-in API server has no ${missing}`);
    return this.#dispatch(request.method, call);
  }

  async #dispatch(method: string, call: Call): Promise<LocalReply> {
    const { resource, namespace, name } = call.target;
    if (name === undefined) {
      if (method === 'GET') return reply(200, this.#list(call));
      if (method === 'POST') return reply(201, await this.#create(call));
    } else {
      if (method === 'GET') return reply(200, this.#shown(call, this.store.get(resource, namespace, name)));
      if (method === 'PUT') return reply(200, await this.#update(call, parsedObject(call.body)));
      if (method === 'PATCH') return reply(200, await this.#patch(call));
      if (method === 'DELETE') return reply(200, await this.#delete(call));
    }
    throw new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
  }

  #health(path: string): LocalReply {
    const headers = { 'content-type': 'text/plain' };
    if (path !== '/readyz' || this.ready) return { status: 200, headers, body: 'ok' };
    const body = '[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n';
    return { status: 500, headers, body };
  }

  #shown({ target: { resource }, accept }: Call, object: StoredObject): object {
    const { resourceVersion } = object.metadata;
    return wantsTable(accept) ? tableOf(resource, [object], { resourceVersion }, this.#nowMs()) : object;
  }

  #list({ target: { resource, namespace }, query, accept }: Call): object {
    const items = this.store.list(resource, namespace, selectorOf(query));
    const metadata = { resourceVersion: this.store.version };
    if (wantsTable(accept)) return tableOf(resource, items, metadata, this.#nowMs());
    return { kind: `${resource.kind}List`, apiVersion: resource.apiVersion, metadata, items };
  }

  async #create(call: Call): Promise<StoredObject> {
    const { resource, namespace } = call.target;
    const object = this.#created(call, parsedObject(call.body));
    if (namespace !== undefined) this.store.get(NAMESPACES, undefined, namespace);
    validate(resource, object, undefined);
    if (resource !== SERVICES) return this.store.insert(resource, object);

    const service = defaulted(asService(object));
    if (this.store.find(resource, namespace, object.metadata.name)) return this.store.insert(resource, service);
    return storeAllocated(service, undefined, this.#allocation, (allocated) => this.store.insert(resource, allocated));
  }

  async #update(
    { target: { resource, namespace, name = '' }, manager }: Call,
    sent: StoredObject,
  ): Promise<StoredObject> {
    const previous = this.store.get(resource, namespace, name);
    if (sent.metadata.name !== name) {
      throw badRequest(`the name of the object (${sent.metadata.name}) does not match the name on the URL (${name})`);
    }
    const version = sent.metadata.resourceVersion;
    if (version !== undefined && version !== '' && version !== previous.metadata.resourceVersion) {
      throw conflict(resource, name, MODIFIED);
    }
    const { uid = '', creationTimestamp = '' } = previous.metadata;
    const metadata = {
      ...sent.metadata,
      ...namespaceFor(namespace, sent),
      uid,
      creationTimestamp,
      managedFields: this.#managedBy(manager, previous),
    };
    const next = { ...sent, apiVersion: resource.apiVersion, kind: resource.kind, metadata };
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

  async #patch(call: Call): Promise<StoredObject> {
    const { resource, namespace, name = '' } = call.target;
    const previous = this.store.get(resource, namespace, name);
    return this.#update(call, patched(previous, call.body, call.contentType));
  }

  async #delete({ target: { resource, namespace, name = '' }, body }: Call): Promise<object> {
    const object = this.store.get(resource, namespace, name);
    const preconditions = jsonFieldsIn(jsonFieldsIn(body === '' ? {} : parsedJson(body))['preconditions']);
    for (const field of ['uid', 'resourceVersion'] as const) {
      if (preconditions[field] !== undefined && preconditions[field] !== object.metadata[field]) {
        throw conflict(
          resource,
          name,
          `the ${field} in the precondition (${preconditions[field]}) does not match the ${field} in record (${object.metadata[field]}). The object might have been deleted and then recreated`,
        );
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

  #created(
    { target: { resource, namespace }, manager }: Pick<Call, 'target' | 'manager'>,
    sent: StoredObject,
  ): StoredObject {
    const metadata = {
      ...sent.metadata,
      ...namespaceFor(namespace, sent),
      uid: randomUUID(),
      creationTimestamp: this.#timestamp(),
      managedFields: this.#managedBy(manager, undefined),
    };
    const defaults =
      resource === NAMESPACES ? { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } } : {};
    return { ...defaults, ...sent, apiVersion: resource.apiVersion, kind: resource.kind, metadata };
  }

  #managedBy(manager: string, previous: KubernetesObject | undefined) {
    const others = (previous?.metadata.managedFields ?? []).filter((entry) => entry.manager !== manager);
    return [...others, { manager, operation: 'Update', time: this.#timestamp() }];
  }

  #timestamp(): string {
    return `${new Date(this.#nowMs()).toISOString().slice(0, 19)}Z`;
  }
}

/** Returns the namespace of the request as metadata, if it has one. Throws if the object names another namespace. */
function namespaceFor(namespace: string | undefined, { metadata }: StoredObject): { readonly namespace?: string } {
  if (namespace === undefined) return {};
  if ((metadata.namespace ?? namespace) === namespace) return { namespace };
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

function reply(status: number, body: object): LocalReply {
  return { status, headers: { 'content-type': 'application/json' }, body: `${JSON.stringify(body)}\n` };
}

function wantsTable(accept: string): boolean {
  return /as=Table/.test(accept);
}
