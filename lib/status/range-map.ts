import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { bitsOf, fromBits } from '../allocator/snapshot-bytes.ts';
import type { RangeMap } from './cluster-status.ts';

/** The position of a range's items in its map. */
export interface RangeLayout {
  /** Text of the first that the map shows. */
  readonly first: string;
  /** The usable and the unusable: 256 of a /24. */
  readonly size: number;
  /** Unusable ones before the first usable. */
  readonly offset: number;
  readonly max: number;
  /** Of the usable, the lowest. */
  readonly reserved: number;
}

/** The items of each state, as sets in the byte format of a snapshot. */
export interface RangeBits {
  readonly used: Uint8Array;
  readonly held: Uint8Array;
  readonly leaking: Uint8Array;
  /** Bit numbers. */
  readonly duplicates: Iterable<number>;
}

/** Items that cannot be used: the network address and the broadcast address. */
export interface Unusable {
  readonly before: number;
  readonly after: number;
}

const MOST_CELLS = 4096;
/** By priority: a bucket has the state of its first. */
const LETTERS = 'DLHURFX';
const RANK = { D: 0, L: 1, H: 2, U: 3, R: 4, F: 5, X: 6 } as const;

/** `undefined` for a range without a usable item. */
export function layoutOf<Item extends string | number>(
  range: RangeAllocator<Item>,
  { before, after }: Unusable,
): RangeLayout | undefined {
  const { max, reserved } = range;
  if (max <= 0) return undefined;
  const first = String(range.itemAt(-before));
  return { first, size: before + max + after, offset: before, max, reserved: Math.min(reserved, max) };
}

/** Draws a range: its letters, and how much of each bucket is in use. A full /12 takes about a tenth of a second. */
export function drawRange(layout: RangeLayout, bits: RangeBits): RangeMap {
  const shift = Math.max(0, Math.ceil(Math.log2(layout.size / MOST_CELLS)));
  const ranks = emptyCells(layout, shift);
  const fill = Array.from(ranks, () => 0);
  forEachCell(bits.used, layout, shift, (cell) => {
    ranks[cell] = RANK.U;
    fill[cell] = (fill[cell] ?? 0) + 1;
  });
  // The worst last: it stays.
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

/** The cells of an empty range. */
function emptyCells({ size, offset, max, reserved }: RangeLayout, shift: number): Uint8Array {
  const cells = new Uint8Array(Math.ceil(size / 2 ** shift));
  return cells.map((_, cell) => {
    const start = cell * 2 ** shift;
    const end = start + 2 ** shift;
    if (end <= offset || start >= offset + max) return RANK.X;
    return reserved > 0 && start < offset + reserved ? RANK.R : RANK.F;
  });
}

/** Calls `see` with the cell of each item of the set; what is beyond the range has none. */
function forEachCell(data: Uint8Array, { offset, max }: RangeLayout, shift: number, see: (cell: number) => void): void {
  for (const bit of bitsOf(data)) if (bit < max) see((bit + offset) >>> shift);
}
