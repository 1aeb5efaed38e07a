/** The bytes are cut off, or are no protobuf. */
export class MalformedProtobuf extends Error {
  override readonly name = 'MalformedProtobuf';
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
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

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = bytes.byteLength;
  }

  /** The number of the next field, or 0 at the end of the message. */
  nextField(): number {
    if (this.#at >= this.#end) {
      return 0;
    }
    const tag = this.#varint();
    this.#wireType = tag & 7;
    const field = tag >>> 3;
    if (field === 0) {
      throw new MalformedProtobuf('a field has the number 0');
    }
    return field;
  }

  /** An int32: the low half of the value. */
  int32(): number {
    this.#expect(VARINT);
    return this.#varint() | 0;
  }

  text(): string {
    const end = this.#lengthEnd();
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
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end) {
        throw new MalformedProtobuf('it is cut off within a number');
      }
      const byte = this.#bytes[this.#at] ?? 0;
      this.#at += 1;
      if (shift < 32) {
        value |= (byte & 0x7f) << shift;
      }
      if (byte < 0x80) {
        return value >>> 0;
      }
    }
    throw new MalformedProtobuf('a number is longer than 10 bytes');
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
