/**
 * What `work` comes to; or the signal's reason, at once. undici heeds the signal of a request only when the request has
 * its connection: a host that swallows packets would hold it until connecting times out.
 */
export async function heedSignal<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    aborted.reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
