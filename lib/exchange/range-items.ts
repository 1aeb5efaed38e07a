import { AllocatorError } from '../allocator/errors.ts';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { bitsOf, hasBit, trimmed } from '../allocator/snapshot-bytes.ts';
import { boundedText } from '../cluster/values.ts';
import { ExchangeError, malformed } from './errors.ts';

/** The items of a range, addresses and ports alike, as canonical texts. */
export interface RangeItems {
  readonly kind: 'addresses' | 'ports';
  /** Canonical text of the range. */
  readonly range: string;
  /** How many items there are: bits 0 to `max - 1`. */
  readonly max: number;
  /** Whether the bit of that item is set. `text` is canonical; what the range does not have is not. */
  has(bits: Uint8Array, text: string): boolean;
  /** Items whose bits are set, ascending. */
  in(bits: Uint8Array): Iterable<string>;
}

/** Reads the text of a range: a CIDR, or ports (`30000-32767`). `Malformed` for what is neither. */
export function rangeItems(text: string): RangeItems | ExchangeError {
  if (text.trim() === '') return malformed('it names no range');
  if (!text.includes('/')) {
    const ports = portRangeOf(text, PICKS_NOTHING);
    return ports instanceof AllocatorError ? noRange(text, ports) : itemsOf('ports', ports);
  }
  const addresses = ipRangeOf(text, PICKS_NOTHING);
  return addresses instanceof AllocatorError ? noRange(text, addresses) : itemsOf('addresses', addresses);
}

/** Here ranges only number their items. */
const PICKS_NOTHING = () => 0;

function itemsOf<Item>(kind: RangeItems['kind'], range: RangeAllocator<Item>): RangeItems {
  return {
    kind,
    range: range.spec,
    max: range.max,
    has: (bits, text) => {
      const item = range.itemOf(text);
      const bit = item === undefined ? undefined : range.indexOf(item);
      return bit !== undefined && String(item) === text && hasBit(bits, bit);
    },
    *in(bits) {
      for (const bit of bitsOf(bits)) yield String(range.itemAt(bit));
    },
  };
}

function noRange(text: string, { message }: AllocatorError): ExchangeError {
  return malformed(`its range "${boundedText(text, 80)}" is none (${boundedText(message, 200)})`);
}

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
    `The data marks item ${highest}, and ${range} has ${max} ${kind}, which are items 0 to ${max - 1}: it is damaged, or of another range. Export it again.`,
  );
}
