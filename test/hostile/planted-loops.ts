import type { Scenarios } from './count-steps.ts';

const list = (n: number) => Array.from({ length: n }, (_, index) => index);

/** Slow and fast loops. The counter of steps must report only the slow ones. */
export const SCENARIOS: Scenarios = {
  'a loop within a loop': (n) => () => {
    let sum = 0;
    for (const one of list(n)) for (const other of list(n)) sum += one * other;
    return sum;
  },
  'a search of a list for each element of another': (n) => () => {
    const others = list(n);
    return list(n).filter((one) => !others.includes(-one));
  },
  'a list that is copied for each element': (n) => () => {
    let all: readonly number[] = [];
    for (const one of list(n)) all = [...all, one];
    return all;
  },
  'one walk': (n) => () => list(n).map((one) => one + 1),
  'a sort and a set': (n) => () => new Set(list(n).toSorted((one, other) => other - one)).size,
};
