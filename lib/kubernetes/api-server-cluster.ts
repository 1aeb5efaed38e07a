import type { Json, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { boundedText, isRecord } from '../cluster/values.ts';
import { type Answer, type ApiCall, apiCalls, type CallOptions } from './api-calls.ts';
import {
  type ClusterPort,
  type CreateResult,
  collectionPath,
  type DeleteResult,
  describeRef,
  type Kind,
  type ObjectRef,
  objectPath,
  type PatchResult,
  RESOURCES,
  refOf,
  type UpdateResult,
} from './cluster-port.ts';
import {
  type CallSite,
  isNotServed,
  jsonOf,
  listIn,
  malformed,
  objectIn,
  refused,
  statusOf,
  updateResult,
  warningsOf,
} from './replies.ts';
import { listedServices } from './service-list.ts';
import type { ApiRequest } from './transport.ts';

export interface ClusterPortOptions extends CallOptions {
  /** `kube-bootstrap-controller/0.1.0 (kubernetes-service)`. */
  readonly userAgent: string;
  /** Receives what the API server warns of. Wrap it in `warnOnce`. */
  readonly warn?: (text: string) => void;
}

/** Who wrote a field, in `metadata.managedFields`. */
export const FIELD_MANAGER = 'kube-bootstrap-controller';

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
    const reply = await this.#send({ method: 'GET', path: objectPath(ref) }, site.purpose);
    if (reply.status === 404 && (statusOf(reply).reason === 'NotFound' || isNotServed(reply))) {
      return undefined;
    }
    return objectIn<T>(reply, ref, site);
  }

  async list<T extends KubernetesObject>(kind: Kind, namespace?: string, labelSelector?: string): Promise<T[]> {
    const site = this.#site(`list ${RESOURCES[kind].plural}${namespace === undefined ? '' : ` in ${namespace}`}`);
    const path = collectionPath(kind, namespace);
    const query = labelSelector === undefined ? '' : `?${new URLSearchParams({ labelSelector })}`;
    return listIn<T>(await this.#send({ method: 'GET', path: `${path}${query}` }, site.purpose), kind, site);
  }

  async create<T extends KubernetesObject>(object: T): Promise<CreateResult<T>> {
    const ref = refOf(object);
    const site = this.#site(`create ${describeRef(ref)}`);
    const path = `${collectionPath(ref.kind, ref.namespace)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send({ method: 'POST', path: path, body: JSON.stringify(object) }, site.purpose);
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
    // Without the uid, an update of a Service or of Endpoints that were deleted would create them again.
    if (!object.metadata.uid || !object.metadata.resourceVersion) {
      throw new TypeError(`${describeRef(ref)} was not read: an update needs its uid and resourceVersion`);
    }
    const site = this.#site(`update ${describeRef(ref)}`);
    const path = `${objectPath(ref)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send({ method: 'PUT', path: path, body: JSON.stringify(object) }, site.purpose);
    return updateResult<T>(reply, ref, site);
  }

  async mergePatch<T extends KubernetesObject>(ref: ObjectRef, patch: Json): Promise<PatchResult<T>> {
    const site = this.#site(`patch ${describeRef(ref)}`);
    const path = `${objectPath(ref)}?fieldManager=${FIELD_MANAGER}`;
    const reply = await this.#send({ method: 'PATCH', path: path, body: JSON.stringify(patch) }, site.purpose);
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
    const reply = await this.#send(
      { method: 'DELETE', path: objectPath(ref), body: JSON.stringify(body) },
      site.purpose,
    );
    if (reply.status === 200 || reply.status === 202) {
      if (!isRecord(jsonOf(reply, site))) throw malformed(site, 'no JSON object, or not all of it');
      return 'deleted';
    }
    const { reason } = statusOf(reply);
    if (reply.status === 404 && reason === 'NotFound') {
      return reply.afterLostReply ? 'deleted' : 'notFound';
    }
    if (reply.status === 409 && reason === 'Conflict') return 'conflict';
    throw refused(site, reply);
  }

  async *services(): AsyncGenerator<ServiceClaim> {
    const site = this.#site('list services');
    const path = collectionPath('Service', undefined);
    const open = (accept: string) => this.#send({ method: 'GET', path, streamed: true }, site.purpose, accept);
    yield* listedServices(open, site);
  }

  #site(purpose: string): CallSite {
    return { server: this.#options.server, purpose };
  }

  async #send(request: Omit<ApiRequest, 'headers'>, purpose: string, accept = 'application/json'): Promise<Answer> {
    const type = request.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const content = request.body === undefined ? {} : { 'content-type': type };
    const headers = { accept, 'user-agent': this.#options.userAgent, ...content };
    const reply = await this.#call({ ...request, headers }, purpose);
    for (const warning of warningsOf(reply)) this.#options.warn?.(warning);
    return reply;
  }
}
