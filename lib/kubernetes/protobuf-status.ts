import { boundedText } from '../cluster/bounded-text.ts';
import { MalformedProtobuf, ProtobufReader } from './protobuf-reader.ts';

/** The fields of a `Status` that a client acts on. Absent texts are empty, absent numbers 0. */
export interface StatusFields {
  readonly message: string;
  readonly reason: string;
  readonly code: number;
  readonly retryAfterSeconds: number;
}

/** `k8s\0`, before every protobuf body of the API. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00];

// Field numbers: k8s.io/api/core/v1/generated.proto, k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and
// k8s.io/apimachinery/pkg/runtime/generated.proto.

export function notOfTheApi(): MalformedProtobuf {
  return new MalformedProtobuf('it does not start as protobuf of the Kubernetes API does');
}

/** Opens the `runtime.Unknown` around a `Status`, and stands in its `raw`. */
function openStatus(bytes: Uint8Array): ProtobufReader {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) {
    throw notOfTheApi();
  }
  const reader = new ProtobufReader(bytes, MAGIC.length);
  let found = '';
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1) {
      found = readTypeMeta(reader);
    } else if (field === 2 && found === 'v1 Status') {
      reader.enter();
      return reader;
    } else {
      reader.skip();
    }
  }
  throw new MalformedProtobuf(`it is no v1 Status${found === '' ? '' : `, but ${boundedText(found)}`}`);
}

/** The `TypeMeta` of an envelope: `v1 Status`. */
export function readTypeMeta(reader: ProtobufReader): string {
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
export function readStatus(bytes: Uint8Array): StatusFields {
  const reader = openStatus(bytes);
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
