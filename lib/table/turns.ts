const ATTEMPTS = 1_000;

/** Does work after all earlier work with this key. */
export type InTurn = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Lets the callers of one process change an item one after the other, in order of arrival, so that none loses an
 * attempt to another. Writers of other processes take no turns here: each write stays conditional.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Waits for all earlier work with this key, whether it succeeded or failed, and then does `work`. A turn ends at the latest
   * when its signal aborts.
   */
  async take<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#last.set(key, over);
    // A call of this work may never end.
    signal.addEventListener('abort', () => end(), { once: true });
    await before;
    try {
      return await work();
    } finally {
      end();
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }
}

export interface TurnOptions {
  readonly turns: Turns;
  /** The deadline of the request. It limits the attempts, not a number of attempts. */
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Waits after attempt number 0, 1, 2 ... was lost to another process, by the duration of the attempt. */
  readonly wait: (attempt: number, tookMs: number) => Promise<void>;
}

/** Returns the options of all changes of ranges by one request, and the number of lost attempts so far. */
export function changesInTurn({ turns, signal, nowMs, wait }: TurnOptions) {
  let retries = 0;
  let begunAtMs = nowMs();
  const inTurn: InTurn = (key, work) => {
    const askedAtMs = nowMs();
    return turns.take(key, signal, () => {
      // The time in line is no part of an attempt.
      begunAtMs += nowMs() - askedAtMs;
      return work();
    });
  };
  const waitAfter = async (attempt: number) => {
    retries += 1;
    await wait(attempt, nowMs() - begunAtMs);
    begunAtMs = nowMs();
  };
  return { update: { attempts: ATTEMPTS, inTurn, wait: waitAfter }, retries: () => retries };
}
