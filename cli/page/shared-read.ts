import { describeError } from '../../lib/telemetry/describe-error.ts';

export interface LatestRead<T> {
  /** The last result, and when it was read. */
  readonly value?: { readonly of: T; readonly atMs: number };
  /** When reads began to fail, and the error; absent: the last one succeeded. */
  readonly trouble?: { readonly message: string; readonly sinceMs: number };
}

export interface SharedReadOptions {
  readonly freshMs: number;
  readonly nowMs: () => number;
}

/** A longer read is aborted. */
const TIMEOUT_MS = 10_000;

/** Shares one read among all requests: the table is read once in `freshMs`. */
export class SharedRead<T> {
  readonly #read: (signal: AbortSignal) => Promise<T>;
  readonly #options: SharedReadOptions;
  readonly #end = new AbortController();
  #latest: LatestRead<T> = {};
  #endedAtMs = Number.NEGATIVE_INFINITY;
  #underWay: Promise<LatestRead<T>> | undefined;

  constructor(read: (signal: AbortSignal) => Promise<T>, options: SharedReadOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Never fails: the result contains the error. */
  get(): Promise<LatestRead<T>> {
    const { freshMs, nowMs } = this.#options;
    if (nowMs() - this.#endedAtMs < freshMs) return Promise.resolve(this.#latest);
    this.#underWay ??= this.#again();
    return this.#underWay;
  }

  /** Aborts the read. */
  end(): void {
    this.#end.abort();
  }

  async #again(): Promise<LatestRead<T>> {
    const { nowMs } = this.#options;
    try {
      const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      this.#latest = { value: { of: await inTime(this.#read(signal), signal), atMs: nowMs() } };
    } catch (error) {
      const { value, trouble } = this.#latest;
      const { message } = describeError(error);
      this.#latest = { ...(value && { value }), trouble: { message, sinceMs: trouble?.sinceMs ?? nowMs() } };
    }
    this.#endedAtMs = nowMs();
    this.#underWay = undefined;
    return this.#latest;
  }
}

/** Ends the read even if it ignores its signal. */
async function inTime<T>(read: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new Error('the table did not answer in time'));
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([read, promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
