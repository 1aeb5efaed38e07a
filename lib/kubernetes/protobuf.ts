import { boundedText } from '../cluster/values.ts';
import { OverBound } from './reply-bounds.ts';

/** The bytes are cut off, or are no protobuf. */
export class MalformedProtobuf extends Error {
  override readonly name = 'MalformedProtobuf';
}

const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/**
 * Reads one protobuf message field by field, forwards only and within its bounds: each call moves on or throws
 * `MalformedProtobuf`, whatever the bytes are. Nested messages are entered and left.
 */
export class ProtobufReader {
  readonly #bytes: Buffer;
  #at: number;
  #end: number;
  #wireType = VARINT;

  constructor(bytes: Uint8Array, start = 0, end = bytes.byteLength) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
  }

  /** The number of the next field, or 0 at the end of the message. */
  nextField(): number {
    if (this.#at >= this.#end) return 0;
    const tag = this.#varint();
    this.#wireType = tag & 7;
    const field = tag >>> 3;
    if (field === 0) throw new MalformedProtobuf('a field has the number 0');
    return field;
  }

  /** An int32: the low half of the value. */
  int32(): number {
    this.#expect(VARINT);
    return this.#varint() | 0;
  }

  /** Throws `OverBound` for a text of more than `longest` bytes. */
  text(longest = Number.POSITIVE_INFINITY): string {
    const end = this.#lengthEnd();
    if (end - this.#at > longest) {
      throw new OverBound(`a text of more than ${longest} bytes in a field for a name or an address`);
    }
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** Whether the text has these bytes. Makes no text of it, and moves on. */
  isText(expected: Uint8Array): boolean {
    const end = this.#lengthEnd();
    const start = this.#at;
    this.#at = end;
    return end - start === expected.length && this.#bytes.compare(expected, 0, expected.length, start, end) === 0;
  }

  /** Goes into the nested message; what comes back is for `leave`. */
  enter(): number {
    const outerEnd = this.#end;
    this.#end = this.#lengthEnd();
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.#at = this.#end;
    this.#end = outerEnd;
  }

  skip(): void {
    if (this.#wireType === VARINT) {
      this.#varint();
    } else if (this.#wireType === BYTES) {
      this.#at = this.#lengthEnd();
    } else if (this.#wireType === FIXED64 || this.#wireType === FIXED32) {
      this.#at = this.#within(this.#at + (this.#wireType === FIXED64 ? 8 : 4));
    } else {
      throw new MalformedProtobuf(`a field has the wire type ${this.#wireType}`);
    }
  }

  /** The low 32 bits, unsigned; the high ones (negative numbers have them) are passed over. */
  #varint(): number {
    const number = varintAt(this.#bytes, this.#at, this.#end);
    if (number === undefined) throw new MalformedProtobuf('it is cut off within a number');
    this.#at = number.end;
    return number.value;
  }

  #lengthEnd(): number {
    this.#expect(BYTES);
    const length = this.#varint();
    return this.#within(this.#at + length);
  }

  #within(end: number): number {
    if (end > this.#end) {
      throw new MalformedProtobuf(`it is cut off: ${end - this.#end} bytes are missing`);
    }
    return end;
  }

  #expect(wireType: number): void {
    if (this.#wireType !== wireType) {
      throw new MalformedProtobuf(`a field has the wire type ${this.#wireType} instead of ${wireType}`);
    }
  }
}

/** `undefined`: it does not end before `end`. */
function varintAt(bytes: Uint8Array, at: number, end = bytes.length) {
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const next = at + shift / 7;
    if (next >= end) return undefined;
    const byte = bytes[next] ?? 0;
    if (shift < 32) value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      return { value: value >>> 0, end: next + 1 };
    }
  }
  throw new MalformedProtobuf('a number is longer than 10 bytes');
}

/** A field in the bytes of a message that is still arriving. */
export interface FieldPlace {
  readonly field: number;
  readonly wireType: number;
  /** Of its value. */
  readonly start: number;
  /** May lie beyond the bytes that are there. */
  readonly end: number;
}

/** The field that begins at `at`; `undefined` when too few bytes are there to know its length. Throws `MalformedProtobuf`. */
export function fieldAt(bytes: Uint8Array, at: number): FieldPlace | undefined {
  const tag = varintAt(bytes, at);
  if (tag === undefined) return undefined;
  const field = tag.value >>> 3;
  const wireType = tag.value & 7;
  if (field === 0) throw new MalformedProtobuf('a field has the number 0');
  if (wireType === FIXED64 || wireType === FIXED32) {
    return { field, wireType, start: tag.end, end: tag.end + (wireType === FIXED64 ? 8 : 4) };
  }
  if (wireType !== VARINT && wireType !== BYTES) throw new MalformedProtobuf(`a field has the wire type ${wireType}`);
  const number = varintAt(bytes, tag.end);
  if (number === undefined) return undefined;
  if (wireType === VARINT) return { field, wireType, start: tag.end, end: number.end };
  return { field, wireType, start: number.end, end: number.end + number.value };
}

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
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) throw notOfTheApi();
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
