import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Chance, Clock, ClockEvent } from './clock.ts';
import { installSignals } from './virtual-signals.ts';

let clock: Clock | undefined;
let chance: Chance | undefined;
const LARGE = 2 ** 20;

/** Sets the clock and the random numbers that timers and `Math.random` use from now on. */
export function useTime(theClock: Clock, theChance: Chance): void {
  clock = theClock;
  chance = theChance;
}

function time(): Clock {
  if (clock === undefined) throw new Error('no simulation runs');
  return clock;
}

function endTimer(event: ClockEvent | undefined): void {
  if (event !== undefined) event.isCancelled = true;
}

/** The time that `performance.now` returns while a timer runs later than it was due. */
let pastMs: number | undefined;

/**
 * A repeated timer. It is no event of the clock: at a stall and at its end it runs for each time at which it was due, because its
 * caller measures the lag of the event loop.
 */
class Interval {
  readonly #run: () => void;
  readonly #everyMs: number;
  readonly #clock = time();
  #ranAtMs = this.#clock.nowMs;

  constructor(run: () => void, everyMs: number) {
    this.#run = run;
    this.#everyMs = everyMs;
    this.#clock.onStall.add(this);
  }

  unref(): void {}

  /** Runs the timer for each time at which it was due until now, and once for all that a stall of this length delays. */
  catchUp(stallMs = 0): void {
    while (this.#clock.nowMs - this.#ranAtMs >= this.#everyMs) this.#runAt(this.#ranAtMs + this.#everyMs);
    const endMs = this.#clock.nowMs + stallMs;
    if (endMs - this.#ranAtMs > this.#everyMs) this.#runAt(endMs);
  }

  end(): void {
    this.catchUp();
    this.#clock.onStall.delete(this);
  }

  #runAt(ms: number): void {
    this.#ranAtMs = ms;
    pastMs = ms;
    this.#run();
    pastMs = undefined;
  }
}

/** Replaces the timers of this process. Call it before any module of the project is loaded. */
export function installVirtualTime(): void {
  const wait = (ms = 0, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    time()
      .wait(ms, signal)
      .then(() => value);
  Object.assign(timers, { setTimeout: wait });
  syncBuiltinESMExports();
  Math.random = () => (chance?.pick(LARGE) ?? 0) / LARGE;
  installSignals(time);
  performance.now = () => pastMs ?? time().nowMs;
  Object.assign(globalThis, {
    setImmediate: (run: () => void) => void time().immediates.push(run),
    setInterval: (run: () => void, ms: number) => new Interval(run, ms),
    clearInterval: (interval: Interval) => interval.end(),
    setTimeout: (run: () => void, ms: number) => time().in(ms, run),
    clearTimeout: endTimer,
  });
}
