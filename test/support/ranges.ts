import { AllocatorError } from '../../lib/allocator/errors.ts';
import { type IPRange, ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { type PortRange, portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { seededPick } from './picker.ts';

/** An empty range; throws on a text that does not parse. */
export function ipRange(cidr: string, seed = 1): IPRange {
  return made(ipRangeOf(cidr, seededPick(seed)));
}

/** An empty range; throws on a text that does not parse. */
export function portRange(text: string, seed = 1): PortRange {
  return made(portRangeOf(text, seededPick(seed)));
}

/** Takes what is left and returns it, in the order in which it came. */
export function allocateUntilFull<Item>(range: RangeAllocator<Item>): Item[] {
  const items: Item[] = [];
  for (let next = range.allocateNext(); 'item' in next; next = range.allocateNext()) items.push(next.item);
  return items;
}

/** The value, where an allocator's refusal would be a fault of the test. */
export function made<Value>(value: Value | AllocatorError): Value {
  if (value instanceof AllocatorError) throw value;
  return value;
}
