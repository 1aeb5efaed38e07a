import { AllocatorError } from '../allocator/errors.ts';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { bitsOf, hasBit } from '../allocator/snapshot-bytes.ts';
import { type ExchangeError, malformed } from './errors.ts';

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
  const shown = text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text;
  return malformed(`its range ${JSON.stringify(shown)} is none (${message.slice(0, 200).toWellFormed()})`);
}
