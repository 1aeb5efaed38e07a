import { setImmediate } from 'node:timers';
import { type Deadline, DispatchError } from '../../lib/runtime/deadline.ts';
import { seededPick } from '../support/ranges.ts';

/** An event of the clock. It runs when it is due, unless it is cancelled. */
export interface ClockEvent {
  readonly dueMs: number;
  /** Events that are due at the same time run in this order. */
  readonly order: number;
  readonly run: () => void;
  isCancelled?: true;
}

const STEPS_OF_A_TURN = 64;
/** A world in which more events than this run at one time does not end. */
const MOST_STEPS_NOW = 100_000;

export class Chance {
  readonly pick: (below: number) => number;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.pick = seededPick(seed);
  }

  /**
   * Returns a random generator for one part of the world. If a run leaves that part out, the random numbers of the other parts
   * stay the same.
   */
  of(name: string): Chance {
    let hash = 0x811c9dc5 ^ this.#seed;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    return new Chance(hash ^ (hash >>> 13));
  }

  /** Returns true once in `inTimes` times on average, and never for 0. */
  once(inTimes: number): boolean {
    return inTimes > 0 && this.pick(inTimes) === 0;
  }

  between(least: number, most: number): number {
    return least + this.pick(most - least + 1);
  }

  oneOf<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.pick(choices.length)] ?? choices[0];
  }
}

/** The clock of the world. Time passes when nothing else is left to do, and everything in the world waits by this clock. */
export class Clock {
  nowMs: number;
  /** The time up to which all events have run. It is earlier than `nowMs` after a stall. */
  reachedMs = 0;
  steps = 0;
  stalls = 0;
  readonly immediates: (() => void)[] = [];
  readonly onStall = new Set<{ readonly catchUp: (stallMs: number) => void }>();
  /** The events that are not yet due, with the next one last. */
  readonly #waiting: ClockEvent[] = [];
  readonly #turns: number;
  #planned = 0;
  /** The number of events that ran since the time last passed. */
  #stepsNow = 0;

  /** @param turns the number of turns of Node's event loop to wait after each event; 0 if the world replaces `setImmediate` */
  constructor(startMs = Date.parse('2026-01-01T00:00:00Z'), turns = 0) {
    this.nowMs = startMs;
    this.#turns = turns;
  }

  at(dueMs: number, run: () => void, order = this.#planned++): ClockEvent {
    const event: ClockEvent = { dueMs, order, run };
    let [place, end] = [0, this.#waiting.length];
    while (place < end) {
      const middle = (place + end) >> 1;
      if (isBefore(event, this.#waiting[middle] as ClockEvent)) place = middle + 1;
      else end = middle;
    }
    this.#waiting.splice(place, 0, event);
    return event;
  }

  in(ms: number, run: () => void): ClockEvent {
    return this.at(this.nowMs + Math.max(0, ms), run);
  }

  /** Waits. An abort of the signal ends the wait with the reason of the signal. */
  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal === undefined) return void this.in(ms, resolve);
      if (signal.aborted) return reject(signal.reason);
      const end = this.in(ms, () => {
        signal.removeEventListener('abort', abort);
        resolve();
      });
      const abort = () => {
        end.isCancelled = true;
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Returns the result of `work`; `undefined` if it takes longer. */
  async within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
    const late = Promise.withResolvers<undefined>();
    const end = this.in(ms, () => late.resolve(undefined));
    const result = await Promise.race([work, late.promise]);
    end.isCancelled = true;
    return result;
  }

  /** Starts a deadline. @param frozenMs the time that its process still stands still, in which nothing happens there */
  startDeadline(ms: number, frozenMs = () => 0): Deadline {
    const controller = new AbortController();
    const expire = () => {
      const lateMs = frozenMs();
      if (lateMs > 0) end = this.in(lateMs, expire);
      else controller.abort(new DispatchError('DeadlineExceeded', 'time is over'));
    };
    let end = this.in(ms, expire);
    const cancel = () => {
      end.isCancelled = true;
    };
    return { signal: controller.signal, cancel };
  }

  /** Lets time pass while nothing runs: events that become due meanwhile run late. */
  stall(ms: number): void {
    for (const each of this.onStall) each.catchUp(ms);
    this.nowMs += ms;
    this.stalls++;
  }

  /** Runs due events one after the other until `isOver` returns true or no event is left. */
  async run(isOver: () => boolean): Promise<void> {
    for (;;) {
      await this.#settled();
      let next = isOver() ? undefined : this.#waiting.pop();
      while (next?.isCancelled) next = this.#waiting.pop();
      if (next === undefined) return;
      this.steps++;
      this.#stepsNow = next.dueMs > this.reachedMs ? 0 : this.#stepsNow + 1;
      if (this.#stepsNow > MOST_STEPS_NOW) throw new Error(`an endless loop at ${new Date(this.nowMs).toISOString()}`);
      this.reachedMs = Math.max(this.reachedMs, next.dueMs);
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      next.run();
    }
  }

  async runUntil(endMs: number): Promise<void> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    this.at(endMs, end, Number.POSITIVE_INFINITY);
    await this.run(() => isOver);
  }

  /** Runs all work that does not wait for this clock. `process.nextTick` runs after all promises that are ready. */
  async #settled(): Promise<void> {
    // Node clears weak references only between turns of its event loop.
    if (this.steps % STEPS_OF_A_TURN === 0) await new Promise((resolve) => void setImmediate(resolve));
    for (let turn = 0; turn < this.#turns; turn++) await new Promise((resolve) => void setImmediate(resolve));
    await new Promise<void>((resolve) => process.nextTick(resolve));
    for (let run = this.immediates.shift(); run !== undefined; run = this.immediates.shift()) {
      run();
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
  }
}

function isBefore(one: ClockEvent, other: ClockEvent): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}
