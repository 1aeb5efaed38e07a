import { bitsOf, popCount } from '../../lib/allocator/snapshot-bytes.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import type { RangeKey } from '../../lib/table/ranges.ts';

/** How ranges are named on the command line: as in etcd. */
export const RANGE_NAMES = ['serviceips', 'secondaryserviceips', 'servicenodeports'] as const;
export type RangeName = (typeof RANGE_NAMES)[number];

const PREFIX = 'ranges/';
const MOST_RUNS = 10;

export function keyOf(name: RangeName): RangeKey {
  return `${PREFIX}${name}`;
}

export function nameOfKey(key: RangeKey): string {
  return key.slice(PREFIX.length);
}

/** The items of a range whose bits are set. */
export function itemsIn(range: string, bits: Uint8Array): string[] {
  const items = rangeItems(range);
  if (items instanceof ExchangeError) throw items;
  return [...items.in(bits)];
}

/** The same for people: `10.0.0.5, 10.0.0.8-10.0.0.12`, and how many more there are. */
export function itemsText(range: string, bits: Uint8Array): string {
  const items = itemsIn(range, bits);
  const numbers = [...bitsOf(bits)];
  const runs: string[] = [];
  let from = 0;
  while (from < items.length && runs.length < MOST_RUNS) {
    let to = from;
    while (to + 1 < items.length && numbers[to + 1] === (numbers[to] ?? 0) + 1) to += 1;
    runs.push(runText(items[from] ?? '', items[to] ?? '', to - from));
    from = to + 1;
  }
  const left = popCount(bits) - from;
  return `${runs.join(', ')}${left > 0 ? ` and ${left} more` : ''}`;
}

/** Two neighbours are named one by one. */
function runText(first: string, last: string, further: number): string {
  if (further === 0) return first;
  return further === 1 ? `${first}, ${last}` : `${first}-${last}`;
}
