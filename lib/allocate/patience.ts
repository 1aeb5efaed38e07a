import { setTimeout as sleep } from 'node:timers/promises';

const SHORTEST_MS = 20;
const LONGEST_MS = 2_000;

/**
 * How long those who change one range at the same time wait for one another. A loss makes the waits twice as long, a win
 * half as long, and a warm function remembers that for its next invocation: under many callers, who comes new waits like
 * those who wait already, or they would never have their turn.
 */
export class Patience {
  readonly #pause: (ms: number) => Promise<void>;
  #windowMs = SHORTEST_MS;

  /** `pause` is for tests. */
  constructor(pause: (ms: number) => Promise<void> = (ms) => sleep(ms)) {
    this.#pause = pause;
  }

  /** Before the first attempt: at once, unless there was a crowd lately. */
  async begin(): Promise<void> {
    if (this.#windowMs > SHORTEST_MS) await this.#wait();
  }

  /** After an attempt that another came before. */
  async lost(): Promise<void> {
    this.#windowMs = Math.min(2 * this.#windowMs, LONGEST_MS);
    await this.#wait();
  }

  won(): void {
    this.#windowMs = Math.max(this.#windowMs / 2, SHORTEST_MS);
  }

  /** At random, so that not all of them come again together. */
  #wait(): Promise<void> {
    return this.#pause(Math.random() * this.#windowMs);
  }
}
