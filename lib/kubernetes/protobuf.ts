import { OverBound } from './reply-bounds.ts';

export class MalformedProtobuf extends Error {
  override readonly name = 'MalformedProtobuf';
}

const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** The four bytes `k8s\0` at the beginning of every protobuf body of the API. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/**
 * Reads one protobuf message forwards and within its bounds: each call advances or throws `MalformedProtobuf`.
 *
 *     for (let field = reader.next(); field !== 0; field = reader.next()) {
 *       if (field === 3) name = reader.text();
 *     }
 */
export class ProtobufReader {
  readonly #bytes: Buffer;
  #at: number;
  #end: number;
  #wireType = VARINT;
  #valueAt = -1;
  readonly #outerEnds: number[] = [];

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
  }

  /** Reads `MAGIC`. Throws `MalformedProtobuf` if the bytes do not begin with it. */
  requireMagic(): void {
    if (MAGIC.some((byte, index) => this.#bytes[this.#at + index] !== byte)) {
      throw new MalformedProtobuf('it does not start as protobuf of the Kubernetes API does');
    }
    this.#at += MAGIC.length;
  }

  /** Skips the last value if it was not read, and returns the number of the next field; 0 at the end of the message. */
  next(): number {
    if (this.#at === this.#valueAt) this.#skip();
    if (this.#at >= this.#end) {
      this.#end = this.#outerEnds.pop() ?? this.#end;
      return 0;
    }
    const tag = this.#varint();
    this.#wireType = tag & 7;
    this.#valueAt = this.#at;
    return fieldNumber(tag);
  }

  /** Begins to read the message in a field. The message ends when `next` returns 0. */
  enter(): void {
    const end = this.#lengthEnd();
    this.#outerEnds.push(this.#end);
    this.#end = end;
  }

  /** Returns an int32: the low 32 bits of the value. */
  int32(): number {
    this.#expect(VARINT);
    return this.#varint() | 0;
  }

  /** Reads a Time, and returns it in ms. Supports only whole seconds until the year 2106. */
  timeMs(): number {
    let seconds = 0;
    this.enter();
    for (let field = this.next(); field !== 0; field = this.next()) {
      if (field === 1) seconds = this.int32();
    }
    return (seconds >>> 0) * 1000;
  }

  /**
   * Returns a text. Throws `OverBound` for a text of more than `longest` bytes.
   * @param likely the usual text of the field: comparing is faster than decoding
   */
  text(longest = Number.POSITIVE_INFINITY, likely = ''): string {
    const start = this.#skipLength();
    if (this.#at - start > longest) {
      throw new OverBound(`a text of more than ${longest} bytes in a field for a name or an address`);
    }
    return this.#textAt(start, this.#at, likely);
  }

  /** Returns a text without the bytes beyond `longest`. */
  textStart(longest: number, likely = ''): string {
    const start = this.#skipLength();
    return this.#textAt(start, Math.min(this.#at, start + longest), likely);
  }

  /** Reads a text. Returns true if it equals the given text, and has only ASCII characters. */
  isText(text: string): boolean {
    const start = this.#skipLength();
    return this.#isAscii(text, start, this.#at);
  }

  #skip(): void {
    if (this.#wireType === VARINT) this.#varint();
    else if (this.#wireType === BYTES) this.#skipLength();
    else this.#at = this.#within(this.#at + sizeOf(this.#wireType));
  }

  #textAt(start: number, end: number, likely: string): string {
    return this.#isAscii(likely, start, end) ? likely : this.#bytes.toString('utf8', start, end);
  }

  #isAscii(text: string, start: number, end: number): boolean {
    if (text.length !== end - start) return false;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > 0x7f || code !== this.#bytes[start + index]) return false;
    }
    return true;
  }

  /** Returns the low 32 bits of a number as an unsigned number. Skips the high bits, which negative numbers have. */
  #varint(): number {
    const first = this.#bytes[this.#at] ?? 0;
    if (first < 0x80 && this.#at < this.#end) {
      this.#at += 1;
      return first;
    }
    const number = varintAt(this.#bytes, this.#at, this.#end);
    if (number === undefined) throw new MalformedProtobuf('it is cut off within a number');
    this.#at = number.end;
    return number.value;
  }

  /** Skips a value with a length, and returns its start. */
  #skipLength(): number {
    const end = this.#lengthEnd();
    const start = this.#at;
    this.#at = end;
    return start;
  }

  #lengthEnd(): number {
    this.#expect(BYTES);
    const length = this.#varint();
    return this.#within(this.#at + length);
  }

  #within(end: number): number {
    if (end <= this.#end) return end;
    throw new MalformedProtobuf(`it is cut off: ${end - this.#end} bytes are missing`);
  }

  #expect(wireType: number): void {
    if (this.#wireType === wireType) return;
    throw new MalformedProtobuf(`a field has the wire type ${this.#wireType} instead of ${wireType}`);
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
    if (byte < 0x80) return { value: value >>> 0, end: next + 1 };
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

/** Returns the place of a field, relative to `at`; `undefined` if its length has not arrived. Throws `MalformedProtobuf`. */
export function fieldAt(bytes: Uint8Array, at: number): FieldPlace | undefined {
  const tag = varintAt(bytes, at);
  if (tag === undefined) return undefined;
  const wireType = tag.value & 7;
  const value = valueAt(bytes, wireType, tag.end);
  return value && { field: fieldNumber(tag.value), wireType, start: value.start - at, end: value.end - at };
}

function fieldNumber(tag: number): number {
  if (tag >>> 3 === 0) throw new MalformedProtobuf('a field has the number 0');
  return tag >>> 3;
}

/** Returns the size of a value of this type. Throws `MalformedProtobuf` for a group, which the API does not use. */
function sizeOf(wireType: number): number {
  if (wireType === FIXED64) return 8;
  if (wireType === FIXED32) return 4;
  throw new MalformedProtobuf(`a field has the wire type ${wireType}`);
}

/** Returns the place of a value; `undefined` if its length has not arrived yet. */
function valueAt(bytes: Uint8Array, wireType: number, at: number): Pick<FieldPlace, 'start' | 'end'> | undefined {
  if (wireType !== VARINT && wireType !== BYTES) return { start: at, end: at + sizeOf(wireType) };
  const number = varintAt(bytes, at);
  if (number === undefined || wireType === VARINT) return number && { start: at, end: number.end };
  return { start: number.end, end: number.end + number.value };
}
