import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { hostBits, type Network } from '../../lib/allocator/network.ts';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { USAGE_CELLS } from '../../lib/cluster/service-cidr-usage.ts';
import type { RangeMap } from './cluster-status.ts';

export interface RangeLayout {
  readonly first: string;
  /** The number of unusable items before the first usable one and after the last: network and broadcast address. */
  readonly before: number;
  readonly after: number;
  /** The number of usable items, the lowest of which are reserved. */
  readonly max: number;
  readonly reserved: number;
}

/** The items of each state, as sets in the byte format of a snapshot. */
export interface RangeBits {
  readonly used: Uint8Array;
  readonly held: Uint8Array;
  readonly leaking: Uint8Array;
  readonly duplicates: Iterable<number>;
}

const MOST_CELLS = 1024;
/** The letters of the states by priority: a bucket shows the first of its states. */
const LETTERS = 'DLHURFX';
const RANK = { D: 0, L: 1, H: 2, U: 3, R: 4, F: 5, X: 6 } as const;

/**
 * Draws a range: the letters, and the use of each bucket; `undefined` without a usable item. A full /12 takes about a
 * tenth of a second.
 */
export function drawRange(layout: RangeLayout, bits: RangeBits): RangeMap | undefined {
  if (layout.max <= 0) return undefined;
  const shift = Math.max(0, Math.ceil(Math.log2(sizeOf(layout) / MOST_CELLS)));
  const ranks = emptyCells(layout, shift);
  const fill = Array.from(ranks, () => 0);
  forEachCell(bits.used, layout, shift, (cell) => {
    ranks[cell] = RANK.U;
    fill[cell] = (fill[cell] ?? 0) + 1;
  });
  // The worst state is drawn last and stays.
  for (const [data, rank] of [
    [bits.held, RANK.H],
    [bits.leaking, RANK.L],
    [fromBits(bits.duplicates), RANK.D],
  ] as const) {
    forEachCell(data, layout, shift, (cell) => {
      ranks[cell] = rank;
    });
  }
  return {
    itemsPerCell: 2 ** shift,
    first: layout.first,
    cells: Array.from(ranks, (rank) => LETTERS[rank]).join(''),
    ...(shift > 0 && { fill }),
  };
}

/** The usage of a network without a bitmap. */
export interface NetworkUsage {
  /** The digits of `ServiceCidrUsage`. */
  readonly cells: string;
  readonly reserved: number;
  readonly duplicates: readonly string[];
}

/** Draws a network of any size: the use of its parts, and duplicates. */
export function drawUsage(network: Network, { cells, reserved, duplicates }: NetworkUsage): RangeMap | undefined {
  const shift = Math.max(0, hostBits(network) - Math.log2(USAGE_CELLS));
  const itemsPerCell = 2 ** shift;
  const after = network.family === 'IPv4' ? 1 : 0;
  const max = 2 ** hostBits(network) - 1 - after;
  if (max <= 0) return undefined;
  const first = formatAddress({ family: network.family, value: network.base });
  const ranks = emptyCells({ first, before: 1, after, max, reserved }, shift);
  const levels = Array.from(ranks, (_, cell) => Number(cells[cell] ?? 0));
  for (const [cell, level] of levels.entries()) if (level > 0) ranks[cell] = RANK.U;
  for (const text of duplicates) {
    const { value } = parseAddress(text) ?? { value: network.base };
    ranks[Number((value - network.base) >> BigInt(shift))] = RANK.D;
  }
  return {
    itemsPerCell,
    first,
    cells: Array.from(ranks, (rank) => LETTERS[rank]).join(''),
    ...(shift > 0 && { fill: levels.map((level) => (level * itemsPerCell) / 4) }),
  };
}

function sizeOf({ before, max, after }: RangeLayout): number {
  return before + max + after;
}

function emptyCells(layout: RangeLayout, shift: number): Uint8Array {
  const { before, max, reserved } = layout;
  const cells = new Uint8Array(Math.ceil(sizeOf(layout) / 2 ** shift));
  return cells.map((_, cell) => {
    const start = cell * 2 ** shift;
    const end = start + 2 ** shift;
    if (end <= before || start >= before + max) return RANK.X;
    return reserved > 0 && start < before + reserved ? RANK.R : RANK.F;
  });
}

function forEachCell(data: Uint8Array, { before, max }: RangeLayout, shift: number, see: (cell: number) => void): void {
  for (const bit of bitsOf(data)) if (bit < max) see((bit + before) >>> shift);
}
