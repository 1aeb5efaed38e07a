import { setImmediate } from 'node:timers';
import { seededPick } from '../support/ranges.ts';

/** It runs when it is due, unless it is cancelled. */
export interface ClockEvent {
  readonly dueMs: number;
  /** Events of one time run in the order in which they were planned. */
  readonly order: number;
  readonly run: () => void;
  isCancelled?: true;
}

const STEPS_OF_A_TURN = 64;

/** A source of chance: the same seed gives the same numbers. */
export class Chance {
  readonly pick: (below: number) => number;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.pick = seededPick(seed);
  }

  /** A source of its own for each part of the world: when one part is left out, the others stay the same. */
  of(name: string): Chance {
    let hash = 0x811c9dc5 ^ this.#seed;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    return new Chance(hash ^ (hash >>> 13));
  }

  /** True once in so many times; never for 0. */
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

/** The time of the world, which passes when nothing else is left to do. Nothing in the world waits by any other clock. */
export class Clock {
  nowMs: number;
  steps = 0;
  stalls = 0;
  /** What `setImmediate` was called with. */
  readonly immediates: (() => void)[] = [];
  readonly #heap: ClockEvent[] = [];
  readonly #turns: number;
  #planned = 0;

  /** @param turns of Node's loop after each event: none where `setImmediate` is that of the world */
  constructor(startMs = Date.parse('2026-01-01T00:00:00Z'), turns = 0) {
    this.nowMs = startMs;
    this.#turns = turns;
  }

  at(dueMs: number, run: () => void, order = this.#planned++): ClockEvent {
    const event: ClockEvent = { dueMs, order, run };
    const heap = this.#heap;
    let place = heap.push(event) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!isBefore(event, heap[above])) break;
      heap[place] = heap[above] as ClockEvent;
      place = above;
    }
    heap[place] = event;
    return event;
  }

  in(ms: number, run: () => void): ClockEvent {
    return this.at(this.nowMs + Math.max(0, ms), run);
  }

  /** Waits. A signal that aborts meanwhile ends the wait with its reason. */
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

  /** Nothing runs for so long: what was due meanwhile is late. */
  stall(ms: number): void {
    this.nowMs += ms;
    this.stalls++;
  }

  /** Runs what is due, one event after the other, until `isOver` or nothing is left. */
  async run(isOver: () => boolean): Promise<void> {
    for (;;) {
      await this.#settled();
      let next = isOver() ? undefined : this.#next();
      while (next?.isCancelled) next = this.#next();
      if (next === undefined) return;
      this.steps++;
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      next.run();
    }
  }

  /** Runs what is due until then, that of this time included. */
  async runUntil(endMs: number): Promise<void> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    this.at(endMs, end, Number.POSITIVE_INFINITY);
    await this.run(() => isOver);
  }

  /** Runs all work that does not wait for this clock, up to its next wait: a tick of Node runs after all promises. */
  async #settled(): Promise<void> {
    // Node forgets what weak references lead to only between the turns of its loop.
    if (this.steps % STEPS_OF_A_TURN === 0) await new Promise((resolve) => void setImmediate(resolve));
    for (let turn = 0; turn < this.#turns; turn++) await new Promise((resolve) => void setImmediate(resolve));
    await new Promise<void>((resolve) => process.nextTick(resolve));
    for (let run = this.immediates.shift(); run !== undefined; run = this.immediates.shift()) {
      run();
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
  }

  #next(): ClockEvent | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1], heap[below])) below++;
      if (!isBefore(heap[below], last)) break;
      heap[place] = heap[below] as ClockEvent;
      place = below;
    }
    heap[place] = last;
    return first;
  }
}

function isBefore(one: ClockEvent | undefined, other: ClockEvent | undefined): boolean {
  if (one === undefined || other === undefined) return one !== undefined;
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}
