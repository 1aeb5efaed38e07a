import type { IPFamily } from './ip-address.ts';
import { firstUsable, lastUsable, type Network } from './network.ts';

export interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

/** Returns the usable addresses of the networks of a family, as ascending intervals that do not overlap. */
export function usableIntervals(networks: readonly Network[], family: IPFamily): readonly Interval[] {
  const usable = networks
    .filter((network) => network.family === family)
    .map((network) => ({ first: firstUsable(network), last: lastUsable(network) }))
    .filter(({ first, last }) => first <= last)
    .sort((one, other) => (one.first < other.first ? -1 : Number(one.first > other.first)));
  const merged: Interval[] = [];
  for (const { first, last } of usable) {
    const before = merged.at(-1);
    if (before === undefined || first > before.last) merged.push({ first, last });
    else if (last > before.last) merged[merged.length - 1] = { first: before.first, last };
  }
  return merged;
}

export function isWithin(intervals: readonly Interval[], value: bigint): boolean {
  let [from, to] = [0, intervals.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const { first = 0n, last = 0n } = intervals[middle] ?? {};
    if (value < first) to = middle;
    else if (value > last) from = middle + 1;
    else return true;
  }
  return false;
}

/** Returns the number of usable addresses of a network, capped at `Number.MAX_SAFE_INTEGER`. */
export function usableSize(network: Network): number {
  return sizeOf(usableIntervals([network], network.family));
}

/** Returns the number of addresses in the intervals, capped at `Number.MAX_SAFE_INTEGER`. */
export function sizeOf(intervals: readonly Interval[]): number {
  const size = intervals.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
  return Math.min(Number(size), Number.MAX_SAFE_INTEGER);
}
