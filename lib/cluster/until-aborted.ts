/**
 * Returns the result of `work`, unless the signal aborts first: then its reason is thrown, and `work` is abandoned. `defer` delays
 * that, for an error of `work` that says more.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
  defer: (abandon: () => void) => void = (abandon) => abandon(),
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    defer(() => aborted.reject(signal.reason));
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
