import { trimmed } from '../allocator/snapshot-bytes.ts';
import { ExchangeError, malformed } from './errors.ts';
import type { RangeItems } from './range-items.ts';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The bits of a snapshot as JSON has them; none are an empty text. */
export function base64Of(data: Uint8Array): string {
  return Buffer.from(data).toString('base64');
}

/** @throws ExchangeError `Malformed`. */
export function dataFromBase64(text: string): Uint8Array {
  if (!BASE64.test(text)) throw malformed('its data is no base64');
  return trimmed(new Uint8Array(Buffer.from(text, 'base64')));
}

/** @throws ExchangeError `NotInRange` for a bit that is no item of the range. */
export function checkBits(data: Uint8Array, { range, max, kind }: RangeItems): void {
  const highest = (data.length - 1) * 8 + (31 - Math.clz32(data[0] ?? 0));
  if (data.length === 0 || highest < max) return;
  throw new ExchangeError(
    'NotInRange',
    `The data marks item ${highest}, and ${range} has ${max} ${kind}, which are items 0 to ${max - 1}: it is damaged, or of another range. Export it anew.`,
  );
}
