/**
 * Returns the result of `work`, unless the signal aborts first. A call that obeys the signal then ends at once, with an
 * error that names the silent server; otherwise the signal's reason is thrown and `work` is abandoned.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    // Not a wait: what is ready runs first.
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
