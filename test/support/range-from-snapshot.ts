import { AllocatorError } from '../../lib/allocator/errors.ts';
import { type IPRange, ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { type PortRange, portRangeOf } from '../../lib/allocator/port-range.ts';
import type { Pick, RangeSnapshot } from '../../lib/allocator/range-allocator.ts';

/** The range that the snapshot names, with what is allocated in it. */
export function ipRangeFromSnapshot(snapshot: RangeSnapshot, pick: Pick): IPRange | AllocatorError {
  return restored<IPRange>(ipRangeOf(snapshot.range, pick), snapshot);
}

export function portRangeFromSnapshot(snapshot: RangeSnapshot, pick: Pick): PortRange | AllocatorError {
  return restored<PortRange>(portRangeOf(snapshot.range, pick), snapshot);
}

function restored<Range extends IPRange | PortRange>(
  range: Range | AllocatorError,
  snapshot: RangeSnapshot,
): Range | AllocatorError {
  return range instanceof AllocatorError ? range : (range.restore(snapshot) ?? range);
}
