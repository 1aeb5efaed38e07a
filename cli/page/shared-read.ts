import { unlessAborted } from '../../lib/cluster/async.ts';

/** The time limit of a read. */
const TIMEOUT_MS = 10_000;

/** Shares one read among all requests: a result is used for `freshMs` before the table is read again. */
export function sharedRead<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { freshMs, nowMs, ended }: { readonly freshMs: number; readonly nowMs: () => number; readonly ended: AbortSignal },
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  // A read that takes longer is shared until it ends.
  let endedAtMs = Number.POSITIVE_INFINITY;
  return () => {
    if (latest === undefined || nowMs() - endedAtMs >= freshMs) {
      endedAtMs = Number.POSITIVE_INFINITY;
      const signal = AbortSignal.any([ended, AbortSignal.timeout(TIMEOUT_MS)]);
      latest = unlessAborted(signal, () => read(signal)).finally(() => {
        endedAtMs = nowMs();
      });
    }
    return latest;
  };
}
