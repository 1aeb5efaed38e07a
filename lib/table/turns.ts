const ATTEMPTS = 1_000;

export type InTurn = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Makes the callers of one process change an item one after the other, in order of arrival, so that their writes do not
 * conflict. Each write stays conditional, because other processes write too.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `work` after all earlier work with this key has ended. A turn ends at the latest when its signal aborts. */
  async take<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#last.set(key, over);
    // Without this listener, a call in `work` that never ends would block all later work.
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
  /** The deadline of the request. Only the deadline ends the attempts, because their number is practically unlimited. */
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Waits after an attempt was lost to another process. The first attempt has number 0. `tookMs` is the attempt's duration. */
  readonly wait: (attempt: number, tookMs: number) => Promise<void>;
}

/** Returns the options for all range changes of one request, and a function that returns the number of attempts lost so far. */
export function changesInTurn({ turns, signal, nowMs, wait }: TurnOptions) {
  let retries = 0;
  let begunAtMs = nowMs();
  const inTurn: InTurn = (key, work) =>
    turns.take(key, signal, () => {
      begunAtMs = nowMs();
      return work();
    });
  const waitAfter = async (attempt: number) => {
    retries += 1;
    await wait(attempt, nowMs() - begunAtMs);
    begunAtMs = nowMs();
  };
  return { update: { attempts: ATTEMPTS, inTurn, wait: waitAfter }, retries: () => retries };
}
