import { AllocatorError } from '../allocator/errors.ts';
import { ipRangeOf } from '../allocator/ip-range.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { RANGE_KEYS, type RangeKey } from '../cluster/spec-ranges.ts';
import { layoutOf, type RangeLayout, type Unusable } from './range-map.ts';

/** A range as texts and bit numbers, whatever its items are. */
export interface TextRange {
  readonly spec: string;
  readonly max: number;
  readonly reserved: number;
  readonly layout: RangeLayout | undefined;
  /** Of those that are in the range. */
  bitsOf(texts: Iterable<string>): number[];
}

/** An empty range of the text; an error when it is none. */
export function textRange(key: RangeKey, text: string): TextRange | AllocatorError {
  if (key === RANGE_KEYS.nodePorts) {
    const range = portRangeOf(text, nothingToPick);
    return range instanceof AllocatorError ? range : asTexts(range, { before: 0, after: 0 });
  }
  const range = ipRangeOf(text, nothingToPick);
  if (range instanceof AllocatorError) return range;
  return asTexts(range, { before: 1, after: range.family === 'IPv4' ? 1 : 0 });
}

function asTexts<Item extends string | number>(range: RangeAllocator<Item>, unusable: Unusable): TextRange {
  const bitOf = (text: string) => {
    const item = range.itemOf(text);
    return item === undefined ? [] : (range.indexOf(item) ?? []);
  };
  return {
    spec: range.spec,
    max: range.max,
    reserved: range.reserved,
    layout: layoutOf(range, unusable),
    bitsOf: (texts) => [...texts].flatMap(bitOf),
  };
}

function nothingToPick(): number {
  return 0;
}
