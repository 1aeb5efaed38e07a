import { FIELD_MANAGER, type Json, type KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { boundedText } from '../util/values.ts';
import { apiCalls, type CallOptions } from './api-calls.ts';
import {
  type ClusterPort,
  collectionPath,
  describeRef,
  type Kind,
  type ObjectRef,
  objectPath,
  RESOURCES,
  refOf,
  type ServiceSelection,
} from './cluster-port.ts';
import { IP_ADDRESS_READER, type ItemReader, SERVICE_READER } from './item-reader.ts';
import { resourceOf, selfReview } from './permissions.ts';
import { isAbsent, isNotServed, listIn, objectIn, recordOf, refusedCall, updateResult } from './replies.ts';
import { statusOf } from './status.ts';
import { streamedList } from './streamed-list.ts';

const SELECTED: Readonly<Record<ServiceSelection, Query>> = {
  all: {},
  withClusterIPs: { fieldSelector: 'spec.clusterIP!=None,spec.clusterIP!=' },
  withNodePorts: { fieldSelector: 'spec.type!=ClusterIP,spec.type!=ExternalName' },
};

export function clusterPort(options: CallOptions): ClusterPort {
  let servedAtMs: number | undefined;
  const call = apiCalls(options);
  const send: typeof call = async (...args) => {
    const reply = await call(...args);
    const dateMs = Date.parse(reply.headers['date'] ?? '');
    if (!Number.isNaN(dateMs)) servedAtMs = Math.min(servedAtMs ?? dateMs, dateMs);
    return reply;
  };

  const change = (verb: string, method: 'PUT' | 'PATCH', ref: ObjectRef, body: object | Json) => {
    const path = `${objectPath(ref)}?fieldManager=${FIELD_MANAGER}`;
    return send(`${verb} ${describeRef(ref)}`, { method, path }, body);
  };

  const listed = <Item extends { readonly name: string }>(reader: ItemReader<Item>, query: Query = {}) => {
    const request = { method: 'GET', path: listPath(reader.kind, undefined, query), streamed: true } as const;
    const purpose = `list ${RESOURCES[reader.kind].plural}`;
    return streamedList((accept) => send(purpose, request, undefined, accept), reader);
  };

  return {
    async get(ref) {
      const reply = await send(`get ${describeRef(ref)}`, { method: 'GET', path: objectPath(ref) });
      if (isAbsent(reply) || (RESOURCES[ref.kind].isNew && isNotServed(reply))) return undefined;
      return objectIn(reply, ref);
    },

    async list(kind, namespace, labelSelector) {
      const purpose = `list ${RESOURCES[kind].plural}${namespace === undefined ? '' : ` in ${namespace}`}`;
      const path = listPath(kind, namespace, labelSelector === undefined ? {} : { labelSelector });
      return listIn(await send(purpose, { method: 'GET', path }), kind);
    },

    async create(object) {
      const ref = refOf(object);
      const path = `${collectionPath(ref.kind, ref.namespace)}?fieldManager=${FIELD_MANAGER}`;
      const reply = await send(`create ${describeRef(ref)}`, { method: 'POST', path }, object);
      if (reply.status === 200 || reply.status === 201) return { outcome: 'created', object: objectIn(reply, ref) };
      const { reason, message, missingKind, isNamespaceTerminating } = statusOf(reply);
      if (reply.status === 409 && reason === 'AlreadyExists') return { outcome: 'alreadyExists' };
      if (reply.status === 422) return { outcome: 'invalid', message: boundedText(message) };
      const terminating = isNamespaceTerminating || message.includes('because it is being terminated');
      const missing = reason === 'NotFound' && missingKind === 'namespaces';
      if ((reply.status === 403 && terminating) || (reply.status === 404 && missing)) {
        return { outcome: 'namespaceUnavailable', message: boundedText(message) };
      }
      throw refusedCall(reply);
    },

    /** Requires a uid in the object. Without it, an update of a deleted Service or Endpoints would create the object again. */
    async update(object) {
      const ref = refOf(object);
      requireRead(object, ref);
      return updateResult(await change('update', 'PUT', ref, object), ref);
    },

    async mergePatch(ref, patch) {
      return updateResult(await change('patch', 'PATCH', ref, patch), ref);
    },

    async delete(object) {
      const ref = refOf(object);
      const preconditions = requireRead(object, ref);
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
      const request = { method: 'DELETE', path: objectPath(ref) } as const;
      const reply = await send(`delete ${describeRef(ref)}`, request, body);
      if (reply.status === 200 || reply.status === 202) {
        recordOf(reply);
        return 'deleted';
      }
      const { reason } = statusOf(reply);
      if (isAbsent(reply)) return reply.afterLostReply ? 'deleted' : 'notFound';
      if (reply.status === 409 && reason === 'Conflict') return 'conflict';
      throw refusedCall(reply);
    },

    services: (selection = 'all') => listed(SERVICE_READER, SELECTED[selection]),
    ipAddresses: () => listed(IP_ADDRESS_READER),
    servedAtMs: () => servedAtMs,

    allows: (verb, kind) => selfReview(options).allows({ verb, ...resourceOf(kind) }),
  };
}

type Query = Readonly<Record<string, string>>;

function listPath(kind: Kind, namespace: string | undefined, query: Query): string {
  const text = new URLSearchParams(query).toString();
  return `${collectionPath(kind, namespace)}${text && `?${text}`}`;
}

/** Returns the uid and the resourceVersion of an object that was read. A write of the object is conditional on both. */
function requireRead({ metadata: { name, uid, resourceVersion } }: KubernetesObject, ref: ObjectRef) {
  if (name && uid && resourceVersion) return { uid, resourceVersion };
  throw new TypeError(`${describeRef(ref)} was not read: a write needs its name, uid and resourceVersion`);
}
