// Allocations of the next free item beside upstream's allocators over a bitmap, in ranges from empty to nearly full.
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { digits, median } from './figure.ts';
import { linesOf, upstreamProgram } from './upstream.ts';

const RANGES = ['10.0.0.0/24', '10.0.0.0/12', 'fd00::/108', '30000-32767'];
/** One of this number of items is free; 0: all items are free. */
const FULL = { empty: 0, '50 % full': 2, '90 % full': 10, '99 % full': 100, '99.9 % full': 1_000 };
const OPERATIONS = 5_000;

/** Returns a row for each range, with the medians of both allocators at each fill level. */
export async function ofAllocators(folder: string, rounds: number): Promise<Record<string, string>[]> {
  const program = upstreamProgram(folder, 'bench-allocator');
  const rows: Record<string, string>[] = [];
  for (const range of RANGES) {
    const row: Record<string, string> = { range };
    for (const [full, free] of Object.entries(FULL)) {
      const others = await linesOf(program, [range, String(free), String(rounds), String(OPERATIONS)]);
      const ours = nanosecondsOf(range, free, rounds);
      row[full] = `${digits(median(ours))}, ${digits(median(others.map(Number)))}`;
    }
    rows.push(row);
  }
  return rows;
}

/** Returns the nanoseconds of an allocation and its release, one for each round. */
function nanosecondsOf(range: string, free: number, rounds: number): number[] {
  const pick = (below: number) => Math.floor(Math.random() * below);
  return range.includes('/') ? timed(ipRangeOf(range, pick)) : timed(portRangeOf(range, pick));

  function timed<Item>(allocator: RangeAllocator<Item> | Refusal): number[] {
    if (isRefused(allocator)) throw new Error(allocator.message);
    for (let index = 0; index < allocator.max; index += 1) {
      if (free > 0 && index % free !== 0) allocator.allocate(allocator.itemAt(index));
    }
    return Array.from({ length: rounds }, () => {
      const startedAt = performance.now();
      for (let operation = 0; operation < OPERATIONS; operation += 1) {
        const next = allocator.allocateNext();
        if (isRefused(next)) throw new Error(next.message);
        allocator.release(next.item);
      }
      return ((performance.now() - startedAt) * 1e6) / OPERATIONS;
    });
  }
}
