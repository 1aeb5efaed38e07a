import { describeError } from '../../lib/telemetry/describe-error.ts';

/** What is known of something that is read again and again. */
export interface Known<T> {
  /** The last that could be read, and when. */
  readonly value?: { readonly of: T; readonly atMs: number };
  /** Since when it cannot be read, and why; absent: the last read went well. */
  readonly trouble?: { readonly message: string; readonly sinceMs: number };
}

export interface SharedReadOptions {
  /** What was read is shown for this long before it is read again. */
  readonly freshMs: number;
  /** A read that takes longer is given up. */
  readonly timeoutMs: number;
  readonly nowMs: () => number;
}

/** One read at a time for all who ask: however many look on, the table is asked once in `freshMs`. */
export class SharedRead<T> {
  readonly #read: (signal: AbortSignal) => Promise<T>;
  readonly #options: SharedReadOptions;
  readonly #end = new AbortController();
  #known: Known<T> = {};
  #endedAtMs = Number.NEGATIVE_INFINITY;
  #underWay: Promise<Known<T>> | undefined;

  constructor(read: (signal: AbortSignal) => Promise<T>, options: SharedReadOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Never fails: a failing read is part of what is known. */
  get(): Promise<Known<T>> {
    const { freshMs, nowMs } = this.#options;
    if (nowMs() - this.#endedAtMs < freshMs) return Promise.resolve(this.#known);
    this.#underWay ??= this.#again();
    return this.#underWay;
  }

  /** Gives up a read that is under way. */
  end(): void {
    this.#end.abort();
  }

  async #again(): Promise<Known<T>> {
    const { nowMs, timeoutMs } = this.#options;
    try {
      const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(timeoutMs)]);
      this.#known = { value: { of: await inTime(this.#read(signal), signal), atMs: nowMs() } };
    } catch (error) {
      const { value, trouble } = this.#known;
      const { message } = describeError(error);
      this.#known = { ...(value && { value }), trouble: { message, sinceMs: trouble?.sinceMs ?? nowMs() } };
    }
    this.#endedAtMs = nowMs();
    this.#underWay = undefined;
    return this.#known;
  }
}

/** Also where the read does not heed its signal. */
async function inTime<T>(read: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new Error('the table has not answered in time'));
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([read, promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
