import { malformed } from './errors.ts';

/** A field as it is on the wire. Numbers of fixed width are bytes. */
export interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
const LONGEST_VARINT = 10;

const encoder = new TextEncoder();

/** The fields of one message, in their order. What is nested stays bytes, views of these. @throws ExchangeError `Malformed`. */
export function readFields(bytes: Uint8Array): WireField[] {
  const fields: WireField[] = [];
  let at = 0;

  const varint = (): bigint => {
    let value = 0n;
    for (let index = 0; index < LONGEST_VARINT; index++) {
      const byte = bytes[at];
      if (byte === undefined) throw malformed('it is cut off within a number');
      at += 1;
      value |= BigInt(byte & 0x7f) << BigInt(index * 7);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw malformed('a number in it is longer than 10 bytes');
  };
  const take = (length: bigint): Uint8Array => {
    const missing = BigInt(at) + length - BigInt(bytes.length);
    if (missing > 0n) throw malformed(`it is cut off: ${missing} bytes are missing`);
    at += Number(length);
    return bytes.subarray(at - Number(length), at);
  };

  while (at < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const wireType = Number(tag & 7n);
    if (number === 0) throw malformed('a field in it has the number 0');
    if (wireType === VARINT) fields.push({ number, value: varint() });
    else if (wireType === BYTES) fields.push({ number, value: take(varint()) });
    else if (wireType === FIXED64 || wireType === FIXED32) {
      fields.push({ number, value: take(wireType === FIXED64 ? 8n : 4n) });
    } else throw malformed(`a field in it has the wire type ${wireType}`);
  }
  return fields;
}

/** The last field of that number, as protobuf has it; empty when there is none. @throws ExchangeError `Malformed`. */
export function bytesIn(fields: readonly WireField[], number: number): Uint8Array {
  const value = fields.findLast((field) => field.number === number)?.value ?? new Uint8Array(0);
  if (typeof value === 'bigint') throw malformed(`its field ${number} is a number`);
  return value;
}

/** @throws ExchangeError `Malformed`. */
export function textIn(fields: readonly WireField[], number: number): string {
  const text = utf8Text(bytesIn(fields, number));
  if (text === undefined) throw malformed(`its field ${number} is no UTF-8`);
  return text;
}

/** An int64; 0 when there is none. @throws ExchangeError `Malformed`. */
export function integerIn(fields: readonly WireField[], number: number): bigint {
  const value = fields.findLast((field) => field.number === number)?.value ?? 0n;
  if (typeof value !== 'bigint') throw malformed(`its field ${number} is no number`);
  return BigInt.asIntN(64, value);
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Written also when empty, as Go writes fields that are no pointers. */
export function bytesField(number: number, content: Uint8Array | string): Uint8Array {
  const bytes = typeof content === 'string' ? encoder.encode(content) : content;
  return joined(varintBytes(BigInt((number << 3) | BYTES)), varintBytes(BigInt(bytes.length)), bytes);
}

export function integerField(number: number, value: bigint): Uint8Array {
  return joined(varintBytes(BigInt((number << 3) | VARINT)), varintBytes(BigInt.asUintN(64, value)));
}

function varintBytes(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Uint8Array.from([...bytes, Number(rest)]);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
