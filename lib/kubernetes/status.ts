import { attempt, isRecord, type JsonRecord } from '../util/values.ts';
import type { HttpReply } from './http-client.ts';
import { ProtobufReader } from './protobuf.ts';
import { parseBoundedJson } from './reply-bounds.ts';

/** The fields of a Status that are read, with their values if there is no Status. The last two fields are read only from JSON. */
const NO_STATUS = {
  message: '',
  reason: '',
  /** The plural of the kind that was not found, such as `namespaces` or `services`. */
  missingKind: '',
  isNamespaceTerminating: false,
};
type Status = Readonly<typeof NO_STATUS>;

export function textAt(record: JsonRecord, field: string): string {
  const value = record[field];
  return typeof value === 'string' ? value : '';
}

export function recordAt(record: JsonRecord, field: string): JsonRecord {
  const value = record[field];
  return isRecord(value) ? value : {};
}

export function isProtobuf(reply: Pick<HttpReply, 'headers'>): boolean {
  return (reply.headers['content-type'] ?? '').startsWith('application/vnd.kubernetes.protobuf');
}

/**
 * Returns the Status of a reply. If a text reply is not a Status, the message is the start of the text. If a protobuf reply is
 * malformed or is not a Status, the returned Status is empty.
 */
export function statusOf(reply: Pick<HttpReply, 'headers'> & { readonly body: Uint8Array }): Status {
  return attempt(() => (isProtobuf(reply) ? statusInProtobuf(reply.body) : statusInJson(reply.body))) ?? NO_STATUS;
}

const text = new TextDecoder('utf-8');

function statusInJson(bytes: Uint8Array): Status {
  const body = parseBoundedJson(bytes);
  if (!isRecord(body) || body['apiVersion'] !== 'v1' || body['kind'] !== 'Status') {
    return { ...NO_STATUS, message: text.decode(bytes.subarray(0, 200)) };
  }
  const details = recordAt(body, 'details');
  const { causes } = details;
  const isTerminating = (cause: unknown) => isRecord(cause) && cause['reason'] === 'NamespaceTerminating';
  return {
    message: textAt(body, 'message'),
    reason: textAt(body, 'reason'),
    missingKind: textAt(details, 'kind'),
    isNamespaceTerminating: Array.isArray(causes) && causes.some(isTerminating),
  };
}

// Field numbers: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and k8s.io/apimachinery/pkg/runtime/generated.proto.

function statusInProtobuf(bytes: Uint8Array): Status {
  const reader = new ProtobufReader(bytes);
  reader.requireMagic();
  let type = '';
  let status = NO_STATUS;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) type = readType(reader);
    else if (field === 2 && type === 'v1 Status') status = readStatus(reader);
  }
  return status;
}

/** Reads a TypeMeta, and returns its API version and kind, such as `v1 ServiceList`. */
export function readType(reader: ProtobufReader): string {
  let apiVersion = '';
  let kind = '';
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) apiVersion = reader.text();
    else if (field === 2) kind = reader.text();
  }
  return `${apiVersion} ${kind}`;
}

function readStatus(reader: ProtobufReader): Status {
  let message = '';
  let reason = '';
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 3) message = reader.text();
    else if (field === 4) reason = reader.text();
  }
  return { ...NO_STATUS, message, reason };
}
