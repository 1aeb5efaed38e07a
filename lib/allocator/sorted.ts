/**
 * Returns the number of elements at the beginning of a list for which `isBefore` returns true. It must return false for all
 * elements after them. It is called for few elements.
 */
export function countBefore<Element>(sorted: readonly Element[], isBefore: (element: Element) => boolean): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isBefore(sorted[middle] as Element)) from = middle + 1;
    else to = middle;
  }
  return from;
}
