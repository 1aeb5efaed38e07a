import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
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
