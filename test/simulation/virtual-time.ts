import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Chance, Clock } from './clock.ts';

let clock: Clock | undefined;
let chance: Chance | undefined;
const LARGE = 2 ** 20;
/** One error for all timeouts, because creating a stack trace for each would cost more than the call that it ends. */
const TIMED_OUT = new DOMException('timed out', 'TimeoutError');

/** Sets the clock and the random numbers that timers and `Math.random` use from now on. */
export function useTime(theClock: Clock, theChance: Chance): void {
  clock = theClock;
  chance = theChance;
}

function time(): Clock {
  if (clock === undefined) throw new Error('no simulation runs');
  return clock;
}

interface Timer {
  readonly unref: () => void;
  isOver: boolean;
}

function startTimer(run: () => void, ms: number, isRepeated: boolean): Timer {
  const timer: Timer = { unref: () => {}, isOver: false };
  const fire = () => {
    if (timer.isOver) return;
    run();
    if (isRepeated) time().in(ms, fire);
  };
  time().in(ms, fire);
  return timer;
}

function endTimer(timer: Timer | undefined): void {
  if (timer !== undefined) timer.isOver = true;
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
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    time().in(ms, () => controller.abort(TIMED_OUT));
    return controller.signal;
  };
  performance.now = () => time().nowMs;
  Object.assign(globalThis, {
    setImmediate: (run: () => void) => void time().immediates.push(run),
    setInterval: (run: () => void, ms: number) => startTimer(run, ms, true),
    setTimeout: (run: () => void, ms: number) => startTimer(run, ms, false),
    clearTimeout: endTimer,
    clearInterval: endTimer,
  });
}
