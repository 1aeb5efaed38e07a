import { boundedText } from '../cluster/bounded-text.ts';
import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { MalformedProtobuf, ProtobufReader } from './protobuf-reader.ts';

/** One page of Services. */
export interface ServicePage {
  readonly services: ServiceClaim[];
  /** Of the whole list; the same on each of its pages. */
  readonly resourceVersion: string;
  /** Empty on the last page. */
  readonly continueToken: string;
}

/** The fields of a `Status` that a client acts on. Absent texts are empty, absent numbers 0. */
export interface StatusFields {
  readonly message: string;
  readonly reason: string;
  readonly code: number;
  readonly retryAfterSeconds: number;
}

/** `k8s\0`, before every protobuf body of the API. */
const MAGIC = [0x6b, 0x38, 0x73, 0x00];

// Field numbers: k8s.io/api/core/v1/generated.proto, k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and
// k8s.io/apimachinery/pkg/runtime/generated.proto.

/** Opens the `runtime.Unknown` around every message, and stands in its `raw`. */
function openEnvelope(bytes: Uint8Array, kind: 'ServiceList' | 'Status'): ProtobufReader {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) {
    throw new MalformedProtobuf('it does not start as protobuf of the Kubernetes API does');
  }
  const reader = new ProtobufReader(bytes, MAGIC.length);
  let found = '';
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) {
      found = readTypeMeta(reader);
    } else if (field === 2 && found === `v1 ${kind}`) {
      reader.enter();
      return reader;
    } else {
      reader.skip();
    }
  }
  throw new MalformedProtobuf(`it is no v1 ${kind}${found === '' ? '' : `, but ${boundedText(found)}`}`);
}

function readTypeMeta(reader: ProtobufReader): string {
  let apiVersion = '';
  let kind = '';
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) apiVersion = reader.text();
    else if (field === 2) kind = reader.text();
    else reader.skip();
  }
  reader.leave(outer);
  return `${apiVersion} ${kind}`;
}

/** Throws `MalformedProtobuf`. */
export function readServiceList(bytes: Uint8Array): ServicePage {
  const reader = openEnvelope(bytes, 'ServiceList');
  const services: ServiceClaim[] = [];
  let meta = { resourceVersion: '', continueToken: '' };
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) meta = readListMeta(reader);
    else if (field === 2) services.push(readService(reader));
    else reader.skip();
  }
  return { services, ...meta };
}

function readListMeta(reader: ProtobufReader) {
  let resourceVersion = '';
  let continueToken = '';
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 2) resourceVersion = reader.text();
    else if (field === 3) continueToken = reader.text();
    else reader.skip();
  }
  reader.leave(outer);
  return { resourceVersion, continueToken };
}

const HOLD_OWNER = Buffer.from(HOLD_OWNER_LABEL);

type Meta = Pick<ServiceClaim, 'name' | 'namespace' | 'uid' | 'resourceVersion' | 'holdOwner'>;

const NO_META: Meta = { name: '', namespace: '', uid: '', resourceVersion: '' };
const NO_SPEC = { type: '', clusterIP: '', clusterIPs: [], ports: [], healthCheckNodePort: 0 };

function readService(reader: ProtobufReader): ServiceClaim {
  let meta = NO_META;
  let spec: ReturnType<typeof readSpec> = NO_SPEC;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) meta = readMeta(reader);
    else if (field === 2) spec = readSpec(reader);
    else reader.skip();
  }
  reader.leave(outer);
  return { ...meta, ...spec };
}

function readMeta(reader: ProtobufReader): Meta {
  let name = '';
  let namespace = '';
  let uid = '';
  let resourceVersion = '';
  let holdOwner: string | undefined;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) name = reader.text();
    else if (field === 3) namespace = reader.text();
    else if (field === 5) uid = reader.text();
    else if (field === 6) resourceVersion = reader.text();
    else if (field === 11) holdOwner = readHoldOwner(reader) ?? holdOwner;
    else reader.skip();
  }
  reader.leave(outer);
  const meta = { name, namespace, uid, resourceVersion };
  return holdOwner === undefined ? meta : { ...meta, holdOwner };
}

/** The value of one label, when it is the one that is looked for. An entry of a map is written key first. */
function readHoldOwner(reader: ProtobufReader): string | undefined {
  let isHoldOwner = false;
  let value: string | undefined;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) isHoldOwner = reader.isText(HOLD_OWNER);
    else if (field === 2 && isHoldOwner) value = reader.text();
    else reader.skip();
  }
  reader.leave(outer);
  return value;
}

function readSpec(reader: ProtobufReader) {
  const ports: { protocol: string; nodePort: number }[] = [];
  const clusterIPs: string[] = [];
  let clusterIP = '';
  let type = '';
  let healthCheckNodePort = 0;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) ports.push(readPort(reader));
    else if (field === 3) clusterIP = reader.text();
    else if (field === 4) type = reader.text();
    else if (field === 12) healthCheckNodePort = reader.int32();
    else if (field === 18) clusterIPs.push(reader.text());
    else reader.skip();
  }
  reader.leave(outer);
  return { type, clusterIP, clusterIPs, ports, healthCheckNodePort };
}

function readPort(reader: ProtobufReader) {
  let protocol = '';
  let nodePort = 0;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 2) protocol = reader.text();
    else if (field === 5) nodePort = reader.int32();
    else reader.skip();
  }
  reader.leave(outer);
  return { protocol, nodePort };
}

/** Throws `MalformedProtobuf`. */
export function readStatus(bytes: Uint8Array): StatusFields {
  const reader = openEnvelope(bytes, 'Status');
  let message = '';
  let reason = '';
  let code = 0;
  let retryAfterSeconds = 0;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 3) message = reader.text();
    else if (field === 4) reason = reader.text();
    else if (field === 5) retryAfterSeconds = readRetryAfter(reader);
    else if (field === 6) code = reader.int32();
    else reader.skip();
  }
  return { message, reason, code, retryAfterSeconds };
}

function readRetryAfter(reader: ProtobufReader): number {
  let seconds = 0;
  const outer = reader.enter();
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 5) seconds = reader.int32();
    else reader.skip();
  }
  reader.leave(outer);
  return seconds;
}
