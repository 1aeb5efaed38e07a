/**
 * Returns the results of `work` for each element, in their order, with at most `limit` under way. The first error ends
 * all.
 */
export async function eachOf<Element, Result>(
  elements: readonly Element[],
  limit: number,
  work: (element: Element) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  // A worker that throws closes the generator, and so ends the others.
  const left = entriesOf(elements);
  const worker = async () => {
    for (const [index, element] of left) results[index] = await work(element);
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, elements.length)) }, worker));
  return results;
}

/** Returns the elements in lists of `size`, the last one perhaps shorter. */
export function batchesOf<Element>(elements: readonly Element[], size: number): (readonly Element[])[] {
  return Array.from({ length: Math.ceil(elements.length / size) }, (_, at) =>
    elements.slice(at * size, (at + 1) * size),
  );
}

function* entriesOf<Element>(elements: readonly Element[]): Generator<readonly [number, Element]> {
  yield* elements.entries();
}
