import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { hostBits, type Network } from '../../lib/allocator/network.ts';
import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import { USAGE_CELLS } from '../../lib/cluster/service-cidr-usage.ts';
import type { CellState, RangeMap } from './cluster-status.ts';

export interface RangeLayout {
  readonly first: string;
  /** The number of unusable addresses before the first usable item. `after` is the number after the last usable item. */
  readonly before: number;
  readonly after: number;
  /** The number of usable items. The `reserved` lowest items are the static band. */
  readonly max: number;
  readonly reserved: number;
}

/** The states in which items are drawn, from the least to the most severe. A cell shows the most severe state of its items. */
const DRAWN = ['U', 'H', 'L', 'D'] as const;
/** A bitmap of the items in each state. */
export type RangeBits = Readonly<Record<(typeof DRAWN)[number], Uint8Array>>;

const MOST_CELLS = 1024;

/** Draws a range from the states of its items; `undefined` if no item is usable. A full /12 range takes about 0.1 s. */
export function drawRange(layout: RangeLayout, bits: RangeBits): RangeMap | undefined {
  if (layout.max <= 0) return undefined;
  const shift = Math.max(0, Math.ceil(Math.log2(sizeOf(layout) / MOST_CELLS)));
  const cells = emptyCells(layout, shift);
  const fill = cells.map(() => 0);
  for (const state of DRAWN) {
    for (const bit of bitsOf(bits[state])) {
      if (bit >= layout.max) continue;
      const cell = (bit + layout.before) >>> shift;
      cells[cell] = state;
      if (state === 'U') fill[cell] = (fill[cell] ?? 0) + 1;
    }
  }
  return { itemsPerCell: 2 ** shift, first: layout.first, cells: cells.join(''), ...(shift > 0 && { fill }) };
}

/** Draws a network of any size. `usage` has a digit from 0 to 4 for each part of the network: how full this part is. */
export function drawUsage(
  network: Network,
  usage: string,
  reserved: number,
  duplicates: readonly string[],
): RangeMap | undefined {
  const shift = Math.max(0, hostBits(network) - Math.log2(USAGE_CELLS));
  const itemsPerCell = 2 ** shift;
  const after = network.family === 'IPv4' ? 1 : 0;
  const max = 2 ** hostBits(network) - 1 - after;
  if (max <= 0) return undefined;
  const first = formatAddress({ family: network.family, value: network.base });
  const empty = emptyCells({ first, before: 1, after, max, reserved }, shift);
  const levels = empty.map((_, cell) => Number(usage[cell] ?? 0));
  const cells = empty.map((state, cell) => ((levels[cell] ?? 0) > 0 ? 'U' : state));
  for (const text of duplicates) {
    const { value } = parseAddress(text) ?? { value: network.base };
    cells[Number((value - network.base) >> BigInt(shift))] = 'D';
  }
  const fill = levels.map((level) => (level * itemsPerCell) / 4);
  return { itemsPerCell, first, cells: cells.join(''), ...(shift > 0 && { fill }) };
}

function sizeOf({ before, max, after }: RangeLayout): number {
  return before + max + after;
}

function emptyCells(layout: RangeLayout, shift: number): CellState[] {
  const { before, max, reserved } = layout;
  return Array.from({ length: Math.ceil(sizeOf(layout) / 2 ** shift) }, (_, cell) => {
    const start = cell * 2 ** shift;
    const end = start + 2 ** shift;
    if (end <= before || start >= before + max) return 'X';
    return reserved > 0 && start < before + reserved ? 'R' : 'F';
  });
}
