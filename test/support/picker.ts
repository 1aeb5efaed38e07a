import type { Pick } from '../../lib/allocator/bitmap.ts';

/** A picker that gives the same numbers for the same seed (the mulberry32 generator). */
export function seededPick(seed: number): Pick {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Always the lowest free item of the band. */
export const pickLowest: Pick = () => 0;

/** Gives `numbers` in turn, modulo what is asked, and keeps what it was asked for. */
export function scriptedPick(numbers: readonly number[]): { readonly pick: Pick; readonly asked: number[] } {
  const asked: number[] = [];
  const pick: Pick = (below) => {
    const next = numbers[asked.length % numbers.length] ?? 0;
    asked.push(below);
    return next % below;
  };
  return { pick, asked };
}
