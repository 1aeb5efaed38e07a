/** Returns the wait after a failed attempt: twice as long after each attempt. The first attempt has number 0. */
export function doubledMs(firstMs: number, attempt: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** attempt, longestMs);
}

/** Returns a random wait, so that callers that failed together do not try again together. */
export function anyPartOf(longestMs: number, random: () => number): number {
  return longestMs * random();
}

/** Returns a random wait that is at least half of the longest wait. */
export function upperHalfOf(longestMs: number, random: () => number): number {
  return longestMs * (0.5 + random() / 2);
}

const SHORTEST_WINDOW_MS = 20;
const LONGEST_WINDOW_MS = { least: 1_000, most: 8_000 };
/** The longest wait, as a multiple of the duration of an attempt. */
const LONGEST_WAIT_IN_ATTEMPTS = 50;

/**
 * Delays callers that change one item at the same time. The longest random wait doubles after a lost attempt and halves
 * after a successful attempt; this also affects later callers in the same process. Within a request, each further wait
 * is a smaller share of the longest wait, so that new callers do not overtake the request.
 */
export class SharedBackOff {
  readonly #pause: (ms: number) => Promise<void>;
  readonly #random: () => number;
  #windowMs = SHORTEST_WINDOW_MS;

  constructor(pause: (ms: number) => Promise<void>, random: () => number) {
    this.#pause = pause;
    this.#random = random;
  }

  get isCalm(): boolean {
    return this.#windowMs <= SHORTEST_WINDOW_MS;
  }

  async begin(): Promise<void> {
    if (!this.isCalm) await this.#wait(1);
  }

  /** Waits after an attempt was lost to another writer. The first attempt of a request has number 0. */
  async lost(attempt: number, tookMs: number): Promise<void> {
    const { least, most } = LONGEST_WINDOW_MS;
    const longestMs = Math.min(Math.max(least, LONGEST_WAIT_IN_ATTEMPTS * tookMs), most);
    this.#windowMs = doubledMs(this.#windowMs, 1, longestMs);
    await this.#wait(attempt + 1);
  }

  won(): void {
    this.#windowMs = Math.max(this.#windowMs / 2, SHORTEST_WINDOW_MS);
  }

  #wait(share: number): Promise<void> {
    return this.#pause(anyPartOf(this.#windowMs, this.#random) / share);
  }
}
