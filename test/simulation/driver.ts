import { seededPick } from '../support/ranges.ts';

interface Waiting {
  readonly dueMs: number;
  readonly resume: () => void;
}

/** One virtual clock and one source of chance: the same seed replays the same history. */
export class Driver {
  /** What waits by itself, waits for this one. */
  static current: Driver | undefined;
  nowMs = Date.parse('2026-01-01T00:00:00Z');
  /** A number from 0 to below what is given. */
  readonly pick: (below: number) => number;
  #waiting: Waiting[] = [];

  constructor(seed: number) {
    this.pick = seededPick(seed);
    Driver.current = this;
  }

  once(inTimes: number): boolean {
    return this.pick(inTimes) === 0;
  }

  oneOf<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.pick(choices.length)] ?? choices[0];
  }

  wait(ms: number): Promise<void> {
    const dueMs = this.nowMs + ms;
    return new Promise((resume) => {
      // Behind what is due at the same time.
      const place = this.#waiting.findLastIndex((other) => other.dueMs <= dueMs);
      this.#waiting.splice(place + 1, 0, { dueMs, resume });
    });
  }

  /** A call to another process: moments, and now and then seconds. */
  hop(slowMs: number): Promise<void> {
    return this.wait(this.once(40) ? this.pick(slowMs) : this.pick(40));
  }

  /** Resumes what waits, one by one, until nothing does or a step was wrong. */
  async run(isWrong: () => boolean): Promise<void> {
    for (;;) {
      // Everything that does not wait for this clock comes to its next wait.
      await new Promise((resolve) => void setImmediate(resolve));
      if (isWrong()) return;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      next.resume();
    }
  }
}
