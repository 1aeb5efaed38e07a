/** Returns the results of `work`, in the order of the elements. At most `limit` calls run at once. An error stops new calls. */
export async function eachOf<Element, Result>(
  elements: readonly Element[],
  limit: number,
  work: (element: Element) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  // A worker that throws closes the generator, so that the other workers end.
  const left = entriesOf(elements);
  const worker = async () => {
    for (const [index, element] of left) results[index] = await work(element);
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, elements.length)) }, worker));
  return results;
}

/** Returns the elements in lists of `size`. The last list may be shorter. */
export function batchesOf<Element>(elements: readonly Element[], size: number): (readonly Element[])[] {
  return Array.from({ length: Math.ceil(elements.length / size) }, (_, at) =>
    elements.slice(at * size, (at + 1) * size),
  );
}

function* entriesOf<Element>(elements: readonly Element[]): Generator<readonly [number, Element]> {
  yield* elements.entries();
}

/**
 * Returns the result of `work`. If the signal aborts first, throws the error of the aborted call, because this error names the
 * server that did not answer. If the call does not end at once, throws the reason of the signal.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    // `setImmediate` does not wait for a time. It lets results that are already available arrive first.
    // oxlint-disable-next-line eslint/no-restricted-globals
    setImmediate(() => aborted.reject(signal.reason));
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
