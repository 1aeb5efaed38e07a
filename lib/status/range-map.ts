import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits, wordsOf } from '../allocator/snapshot-bytes.ts';
import type { RangeMap } from './cluster-status.ts';

/** The position of a range's items in its map. */
export interface RangeLayout {
  /** Text of the first that the map shows. */
  readonly first: string;
  /** The usable and the unusable: 256 of a /24. */
  readonly size: number;
  /** Unusable ones before the first usable: less than 32. */
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
/** From buckets of this many bits on, a word of 32 items is in one. */
const WORD_SHIFT = 5;
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

/** Draws a range: its letters, and how much of each bucket is in use. A /12 takes some milliseconds. */
export function drawRange(layout: RangeLayout, bits: RangeBits): RangeMap {
  const shift = Math.max(0, Math.ceil(Math.log2(layout.size / MOST_CELLS)));
  const ranks = emptyCells(layout, shift);
  const fill = Array.from(ranks, () => 0);
  forEachCell(bits.used, layout, shift, (cell, items) => {
    ranks[cell] = RANK.U;
    fill[cell] = (fill[cell] ?? 0) + items;
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

/** Sees cells with how many items of the set are in them, perhaps in several parts; cells without any are not seen. */
function forEachCell(
  data: Uint8Array,
  layout: RangeLayout,
  shift: number,
  see: (cell: number, items: number) => void,
): void {
  const words = placesOf(data, layout);
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? 0;
    if (shift >= WORD_SHIFT) {
      if (word !== 0) see(index >>> (shift - WORD_SHIFT), onesIn(word));
      continue;
    }
    for (let rest = word; rest !== 0; rest &= rest - 1) {
      see((index * 32 + 31 - Math.clz32(rest & -rest)) >>> shift, 1);
    }
  }
}

/** The set by places, as words: bits beyond the range are left out, and room is made for what is before the first. */
function placesOf(data: Uint8Array, { offset, max }: RangeLayout): Uint32Array {
  const words = wordsOf(data, 0).subarray(0, Math.ceil(max / 32));
  const beyond = words.length * 32 - max;
  if (beyond > 0) words[words.length - 1] = (words.at(-1) ?? 0) & (0xffffffff >>> beyond);
  if (offset === 0) return words;
  const places = new Uint32Array(words.length + 1);
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? 0;
    places[index] = (places[index] ?? 0) | (word << offset);
    places[index + 1] = word >>> (32 - offset);
  }
  return places;
}

/** Added up in pairs, then in fours, then in bytes. */
function onesIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
