/*
 * Sets of bit numbers in the byte format of a snapshot (`big.Int.Bytes` in `pkg/registry/core/service/allocator/bitmap.go`).
 * A set is one big-endian number: bit 0 is the lowest bit of the *last* byte, and higher bits need more bytes at the front.
 * It has no leading zero bytes, and the empty set has no bytes. Functions accept leading zero bytes and never return them,
 * because stored bytes are compared to skip writes that change nothing.
 */

/** Upstream's `RangeAllocation`: the canonical text of the range, and the allocated bits. */
export interface RangeSnapshot {
  readonly range: string;
  readonly data: Uint8Array;
}

export function trimmed(data: Uint8Array): Uint8Array {
  let first = 0;
  while (data[first] === 0) first += 1;
  return data.slice(first);
}

export function popCount(data: Uint8Array): number {
  let ones = 0;
  for (const byte of data) for (let rest = byte; rest > 0; rest &= rest - 1) ones += 1;
  return ones;
}

export function hasBit(data: Uint8Array, bit: number): boolean {
  return ((byteOf(data, bit >>> 3) >> (bit & 7)) & 1) === 1;
}

export function bitsOf(data: Uint8Array): number[] {
  const bits: number[] = [];
  for (let bit = 0; bit < data.length * 8; bit++) if (hasBit(data, bit)) bits.push(bit);
  return bits;
}

/** Returns the shortest bytes with these bits: `[0b10, 0b1]` for the bits 0 and 9. */
export function fromBits(bits: Iterable<number>): Uint8Array {
  const numbers = [...bits];
  const highest = numbers.reduce((most, bit) => Math.max(most, bit), -1);
  const data = new Uint8Array((highest >> 3) + 1);
  for (const bit of numbers) {
    const index = data.length - 1 - (bit >>> 3);
    data[index] = byteOf(data, bit >>> 3) | (1 << (bit & 7));
  }
  return data;
}

export function union(one: Uint8Array, other: Uint8Array): Uint8Array {
  return combined(one, other, (a, b) => a | b);
}

export function intersect(one: Uint8Array, other: Uint8Array): Uint8Array {
  return combined(one, other, (a, b) => a & b);
}

export function subtract(one: Uint8Array, other: Uint8Array): Uint8Array {
  return combined(one, other, (a, b) => a & ~b);
}

function combined(one: Uint8Array, other: Uint8Array, operation: (a: number, b: number) => number): Uint8Array {
  const data = new Uint8Array(Math.max(one.length, other.length));
  for (let position = 0; position < data.length; position++) {
    data[data.length - 1 - position] = operation(byteOf(one, position), byteOf(other, position));
  }
  return trimmed(data);
}

/** Returns the byte at a position. Positions are counted from the last byte, which has bits 0 to 7. */
function byteOf(data: Uint8Array, position: number): number {
  return data[data.length - 1 - position] ?? 0;
}
