import { unlessAborted } from '../../lib/cluster/async.ts';

/** The time limit of a read. */
const TIMEOUT_MS = 10_000;

export interface SharedReadOptions {
  /** How long a result is used before the table is read again. */
  readonly freshMs: number;
  readonly nowMs: () => number;
  readonly ended: AbortSignal;
}

/** Shares one read among all requests: the table is read once in `freshMs`. */
export function sharedRead<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { freshMs, nowMs, ended }: SharedReadOptions,
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
