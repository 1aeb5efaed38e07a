import { expect } from '@jest/globals';
import fc from 'fast-check';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { ExchangeError, type ExchangeErrorCode } from '../../lib/exchange/errors.ts';
import { type ExchangeFile, readExchangeFile } from '../../lib/exchange/exchange-file.ts';

/** What a kube-apiserver 1.36 that emulates 1.33 keeps as /registry/ranges/serviceips after four Services. */
export const STORED_SERVICE_IPS = Buffer.from(
  '6b3873000a150a027631120f52616e6765416c6c6f636174696f6e12400a100a0012001a0022002a00320038004200120b31302e302e302e302f32341a1f020000000000000000000000000800000000000002000000000000000000011a002200',
  'hex',
);

/** The addresses that it says are taken. */
export const SERVICE_IPS = ['10.0.0.1', '10.0.0.82', '10.0.0.140', '10.0.0.242'];

export const utf8 = (text: string) => new TextEncoder().encode(text);

/** The file, where a refusal would be a fault of the test. */
export function read(bytes: Uint8Array | string): ExchangeFile {
  const file = readExchangeFile(typeof bytes === 'string' ? utf8(bytes) : bytes);
  if (file instanceof ExchangeError) throw file;
  return file;
}

export function refusal(code: ExchangeErrorCode, ...words: readonly string[]): unknown {
  const all = words.map((word) => `(?=[^]*${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')})`).join('');
  return expect.objectContaining({ name: 'ExchangeError', code, message: expect.stringMatching(all) });
}

/** A range, and how many items it has. */
export const RANGES = fc.constantFrom(
  ['10.0.0.0/24', 254],
  ['10.96.0.0/16', 65_534],
  ['fd00:10::/112', 65_535],
  ['30000-32767', 2768],
  ['30000-30000', 1],
) satisfies fc.Arbitrary<readonly [string, number]>;

export function bitsBelow(max: number): fc.Arbitrary<Uint8Array> {
  return fc.uniqueArray(fc.nat(max - 1), { maxLength: 40 }).map(fromBits);
}
