import { boundedText } from '../cluster/bounded-text.ts';
import type { Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { Answer, ApiCall, CallOptions } from './api-calls.ts';
import { apiCalls } from './api-calls.ts';
import type { ClusterPort, CreateResult, DeleteResult, Kind, ObjectRef, UpdateResult } from './cluster-port.ts';
import { ClusterError } from './errors.ts';
import { listIn, objectIn, updateResult } from './object-replies.ts';
import type { CallSite } from './replies.ts';
import { isNotServed, isRecord, jsonOf, malformed, refused, statusOf } from './replies.ts';
import { collectionPath, describeRef, objectPath, RESOURCES, refOf } from './resources.ts';
import { servicePages } from './service-list.ts';
import type { ApiRequest } from './transport.ts';
import { warningsOf } from './warnings.ts';

export interface ClusterPortOptions extends CallOptions {
  /** `kube-bootstrap-controller/0.1.0 (kubernetes-service)`. */
  readonly userAgent: string;
  /** Told what the API server warns of. Wrap it in `tellOnce`. */
  readonly warn?: (text: string) => void;
  /** Objects a page in `list`. Default 500. */
  readonly pageLimit?: number;
  /** Services a page in `services`. Default 2,000. */
  readonly servicePageLimit?: number;
}

/** Who wrote a field, in `metadata.managedFields`. */
export const FIELD_MANAGER = 'kube-bootstrap-controller';

const LISTS_STARTED = 3;

/** The cluster port of one API server, for one pass. */
export function clusterPort(options: ClusterPortOptions): ClusterPort {
  return new ApiServerCluster(options);
}

class ApiServerCluster implements ClusterPort {
  readonly #options: ClusterPortOptions;
  readonly #call: ApiCall;

  constructor(options: ClusterPortOptions) {
    this.#options = options;
    this.#call = apiCalls(options);
  }

  async get<T extends KubernetesObject>(ref: ObjectRef): Promise<T | undefined> {
    const site = this.#site(`get ${describeRef(ref)}`);
    const reply = await this.#send('GET', objectPath(ref), site.purpose);
    if (reply.status === 404 && (statusOf(reply).reason === 'NotFound' || isNotServed(reply))) {
      return undefined;
    }
    return objectIn<T>(reply, ref, site);
  }

  async list<T extends KubernetesObject>(kind: Kind, namespace?: string, labelSelector?: string): Promise<T[]> {
    const site = this.#site(`list ${RESOURCES[kind].plural}${namespace === undefined ? '' : ` in ${namespace}`}`);
    for (let started = 1; ; started += 1) {
      try {
        return await this.#listOnce<T>(kind, collectionPath(kind, namespace), labelSelector, site);
      } catch (error) {
        if (started === LISTS_STARTED || !(error instanceof ClusterError && error.code === 'Expired')) {
          throw error;
        }
      }
    }
  }

  async #listOnce<T extends KubernetesObject>(
    kind: Kind,
    path: string,
    labelSelector: string | undefined,
    site: CallSite,
  ): Promise<T[]> {
    const items: T[] = [];
    const query = new URLSearchParams({ limit: String(this.#options.pageLimit ?? 500) });
    if (labelSelector !== undefined) {
      query.set('labelSelector', labelSelector);
    }
    for (;;) {
      const reply = await this.#send('GET', `${path}?${query}`, site.purpose);
      const page = listIn<T>(reply, kind, site);
      items.push(...page.items);
      if (page.continueToken === '') {
        return items;
      }
      if (page.continueToken === query.get('continue')) {
        throw malformed(site, 'a page that continues with itself');
      }
      query.set('continue', page.continueToken);
    }
  }

  async create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>> {
    const ref = refOf(object);
    const site = this.#site(`create ${describeRef(ref)}`);
    const path = `${collectionPath(ref.kind, ref.namespace)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send('POST', path, site.purpose, JSON.stringify(object));
    if (reply.status === 200 || reply.status === 201) {
      return { outcome: 'created', object: objectIn<T>(reply, ref, site) };
    }
    const { reason, message, detailsKind, causes } = statusOf(reply);
    if (reply.status === 409 && reason === 'AlreadyExists') {
      return { outcome: 'alreadyExists' };
    }
    if (reply.status === 422) {
      return { outcome: 'invalid', message: boundedText(message) };
    }
    const terminating = causes.includes('NamespaceTerminating') || message.includes('because it is being terminated');
    const missing = reason === 'NotFound' && detailsKind === 'namespaces';
    if ((reply.status === 403 && terminating) || (reply.status === 404 && missing)) {
      return { outcome: 'namespaceUnavailable', message: boundedText(message) };
    }
    throw refused(site, reply);
  }

  async update<T extends KubernetesObject>(object: T): Promise<UpdateResult<T>> {
    const ref = refOf(object);
    // Without the uid, an update of a Service or of Endpoints that are gone would make them anew.
    if (!object.metadata.uid || !object.metadata.resourceVersion) {
      throw new TypeError(`${describeRef(ref)} was not read: an update needs its uid and resourceVersion`);
    }
    const site = this.#site(`update ${describeRef(ref)}`);
    const path = `${objectPath(ref)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send('PUT', path, site.purpose, JSON.stringify(object));
    return updateResult<T>(reply, ref, site);
  }

  async mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<UpdateResult<T>> {
    const site = this.#site(`patch ${describeRef(ref)}`);
    const path = `${objectPath(ref)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send('PATCH', path, site.purpose, JSON.stringify(patch));
    return updateResult<T>(reply, ref, site);
  }

  async delete(object: KubernetesObject): Promise<DeleteResult> {
    const ref = refOf(object);
    const { uid, resourceVersion } = object.metadata;
    if (!uid || !resourceVersion) {
      throw new TypeError(`${describeRef(ref)} was not read: a delete needs its uid and resourceVersion`);
    }
    const site = this.#site(`delete ${describeRef(ref)}`);
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
    const reply = await this.#send('DELETE', objectPath(ref), site.purpose, JSON.stringify(body));
    if (reply.status === 200 || reply.status === 202) {
      if (!isRecord(jsonOf(reply))) {
        throw malformed(site, 'no JSON object, or not all of it');
      }
      return 'deleted';
    }
    const { reason } = statusOf(reply);
    if (reply.status === 404 && reason === 'NotFound') {
      return reply.afterLostReply ? 'deleted' : 'notFound';
    }
    if (reply.status === 409 && reason === 'Conflict') {
      return 'conflict';
    }
    throw refused(site, reply);
  }

  async *services(): AsyncGenerator<ServiceClaim> {
    const site = this.#site('list services');
    const path = collectionPath('Service', undefined);
    const page = (query: string, accept: string) =>
      this.#send('GET', `${path}?${query}`, site.purpose, undefined, accept);
    for await (const services of servicePages(page, site, this.#options.servicePageLimit ?? 2_000)) {
      yield* services;
    }
  }

  #site(purpose: string): CallSite {
    return { server: this.#options.server, purpose };
  }

  async #send(
    method: ApiRequest['method'],
    path: string,
    purpose: string,
    body?: string,
    accept = 'application/json',
  ): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const content = body === undefined ? {} : { 'content-type': type };
    const headers = { accept, 'user-agent': this.#options.userAgent, ...content };
    const reply = await this.#call({ method, path, headers, ...(body !== undefined && { body }) }, purpose);
    for (const warning of warningsOf(reply)) {
      this.#options.warn?.(warning);
    }
    return reply;
  }
}
