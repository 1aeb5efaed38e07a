import { boundedText } from '../cluster/bounded-text.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import type { Kind, ObjectRef, UpdateResult } from './cluster-port.ts';
import type { CallSite, JsonRecord } from './replies.ts';
import { isRecord, jsonOf, malformed, PART_OF_A_LIST, recordAt, refused, statusOf, textAt } from './replies.ts';
import { RESOURCES } from './resources.ts';
import type { ApiReply } from './transport.ts';

/** What a PUT or PATCH came to. */
export function updateResult<T extends KubernetesObject>(
  reply: ApiReply,
  ref: ObjectRef,
  site: CallSite,
): UpdateResult<T> {
  const { reason, message } = reply.status === 200 ? { reason: '', message: '' } : statusOf(reply);
  if (reply.status === 409 && reason === 'Conflict') {
    return { outcome: 'conflict' };
  }
  if (reply.status === 404 && reason === 'NotFound') {
    return { outcome: 'notFound' };
  }
  if (reply.status === 422) {
    return { outcome: 'invalid', message: boundedText(message) };
  }
  return { outcome: 'updated', object: objectIn<T>(reply, ref, site) };
}

/** The object of a reply, if it is the one that was asked for. Its fields are the caller's word. */
export function objectIn<T extends KubernetesObject>(reply: ApiReply, ref: ObjectRef, site: CallSite): T {
  if (reply.status !== 200 && reply.status !== 201) {
    throw refused(site, reply);
  }
  const body = jsonOf(reply, site);
  if (!isRecord(body)) {
    throw malformed(site, 'no JSON object, or not all of it');
  }
  if (body['kind'] !== ref.kind || body['apiVersion'] !== RESOURCES[ref.kind].apiVersion) {
    throw malformed(site, `${boundedText(body['kind'])} of ${boundedText(body['apiVersion'])}`);
  }
  const metadata = recordAt(body, 'metadata');
  if (metadata['name'] !== ref.name || metadata['namespace'] !== ref.namespace || !metadata['resourceVersion']) {
    throw malformed(site, 'another object, or one without a resourceVersion');
  }
  return asObject<T>(body);
}

/** The items of a JSON list say neither kind nor apiVersion: they are put back, so that an item can be written again. */
export function listIn<T extends KubernetesObject>(reply: ApiReply, kind: Kind, site: CallSite): T[] {
  if (reply.status !== 200) {
    throw refused(site, reply);
  }
  const body = jsonOf(reply, site);
  const { apiVersion } = RESOURCES[kind];
  if (!isRecord(body) || body['kind'] !== `${kind}List` || body['apiVersion'] !== apiVersion) {
    throw malformed(site, `no ${apiVersion} ${kind}List, or not all of it`);
  }
  const { items } = body;
  if (!Array.isArray(items) || !items.every((item) => isRecord(item) && textAt(recordAt(item, 'metadata'), 'name'))) {
    throw malformed(site, 'a list whose items have no names');
  }
  if (textAt(recordAt(body, 'metadata'), 'continue') !== '') {
    throw malformed(site, PART_OF_A_LIST);
  }
  return items.map((item: JsonRecord) => asObject<T>({ apiVersion, kind, ...item }));
}

function asObject<T extends KubernetesObject>(checked: JsonRecord): T {
  return checked as unknown as T;
}
