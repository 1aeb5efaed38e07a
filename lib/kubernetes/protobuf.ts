import { OverBound } from './reply-bounds.ts';

export class MalformedProtobuf extends Error {
  override readonly name = 'MalformedProtobuf';
}

const CUT_IN_NUMBER = 'it is cut off within a number';

const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** Reads one protobuf message forwards and within its bounds: each call advances or throws `MalformedProtobuf`. */
export class ProtobufReader {
  readonly #bytes: Buffer;
  #at: number;
  #end: number;
  #wireType = VARINT;

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = bytes.byteLength;
  }

  /** Calls `read` with the number of each field. If `read` does not consume the value, the value is skipped. */
  fields(read: (field: number) => void): void {
    while (this.#at < this.#end) {
      const tag = this.#varint();
      this.#wireType = tag & 7;
      const valueAt = this.#at;
      read(fieldNumber(tag));
      if (this.#at === valueAt) this.#skip();
    }
  }

  message(read: (field: number) => void): void {
    const outerEnd = this.#end;
    this.#end = this.#lengthEnd();
    this.fields(read);
    this.#end = outerEnd;
  }

  /** Returns an int32: the low 32 bits of the value. */
  int32(): number {
    this.#expect(VARINT);
    return this.#varint() | 0;
  }

  /** Returns a text. Throws `OverBound` for a text of more than `longest` bytes. */
  text(longest = Number.POSITIVE_INFINITY): string {
    const end = this.#lengthEnd();
    if (end - this.#at > longest) {
      throw new OverBound(`a text of more than ${longest} bytes in a field for a name or an address`);
    }
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** Returns the index of the value among the known texts, or -1. Compares bytes, so that it allocates no string. */
  indexOfText(known: readonly Uint8Array[]): number {
    const end = this.#lengthEnd();
    const start = this.#at;
    this.#at = end;
    return known.findIndex(
      (text) => end - start === text.length && this.#bytes.compare(text, 0, text.length, start, end) === 0,
    );
  }

  #skip(): void {
    const value = valueAt(this.#bytes, this.#wireType, this.#at, this.#end);
    if (value === undefined) throw new MalformedProtobuf(CUT_IN_NUMBER);
    this.#at = this.#within(value.end);
  }

  /** Returns the low 32 bits as an unsigned number. Skips the high bits, which negative numbers have. */
  #varint(): number {
    const number = varintAt(this.#bytes, this.#at, this.#end);
    if (number === undefined) throw new MalformedProtobuf(CUT_IN_NUMBER);
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

/** Returns the number at a position and the position after it; `undefined` if the number does not end before `end`. */
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

/** The position of a field in a message that is still arriving. */
export interface FieldPlace {
  readonly field: number;
  readonly wireType: number;
  readonly start: number;
  /** The end of the field. It may be beyond the bytes that have arrived. */
  readonly end: number;
}

/** Returns the first field of the bytes; `undefined` if its length has not arrived yet. Throws `MalformedProtobuf`. */
export function firstField(bytes: Uint8Array): FieldPlace | undefined {
  const tag = varintAt(bytes, 0);
  if (tag === undefined) return undefined;
  const wireType = tag.value & 7;
  const value = valueAt(bytes, wireType, tag.end);
  return value && { field: fieldNumber(tag.value), wireType, ...value };
}

function fieldNumber(tag: number): number {
  if (tag >>> 3 === 0) throw new MalformedProtobuf('a field has the number 0');
  return tag >>> 3;
}

/** Returns the place of a value; `undefined` if its length has not arrived yet. */
function valueAt(
  bytes: Uint8Array,
  wireType: number,
  at: number,
  end?: number,
): Pick<FieldPlace, 'start' | 'end'> | undefined {
  if (wireType === FIXED64) return { start: at, end: at + 8 };
  if (wireType === FIXED32) return { start: at, end: at + 4 };
  if (wireType !== VARINT && wireType !== BYTES) throw new MalformedProtobuf(`a field has the wire type ${wireType}`);
  const number = varintAt(bytes, at, end);
  if (number === undefined || wireType === VARINT) return number && { start: at, end: number.end };
  return { start: number.end, end: number.end + number.value };
}

/** The four bytes `k8s\0` at the beginning of every protobuf body of the API. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/** Throws `MalformedProtobuf` if the bytes do not begin with `MAGIC`. */
export function requireMagic(bytes: Uint8Array): void {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) {
    throw new MalformedProtobuf('it does not start as protobuf of the Kubernetes API does');
  }
}
