import type { Clock, ClockEvent } from './clock.ts';

interface Source {
  /** Returns the reason if the signal has aborted. */
  readonly reasonNow: () => unknown;
  /** Begins to wait for the abort, as a listener does. Returns a function that ends the wait. */
  readonly watch: (abort: () => void) => () => void;
}

/** One error for all timeouts, because creating a stack trace for each would cost more than the call that it ends. */
const TIMED_OUT = new DOMException('timed out', 'TimeoutError');

/** An `AbortSignal` of the world, because Node's own are slow. It waits for its source only while a listener waits for it. */
class Signal {
  readonly #listeners = new Set<() => void>();
  readonly #source: Source | undefined;
  #reason: unknown;
  #endWait = () => {};

  constructor(source?: Source) {
    this.#source = source;
  }

  get reason(): unknown {
    return this.#reason ?? this.#source?.reasonNow();
  }

  get aborted(): boolean {
    return this.reason !== undefined;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_: 'abort', listener: () => void): void {
    const isFirst = this.#listeners.size === 0 && !this.aborted;
    this.#listeners.add(listener);
    if (isFirst && this.#source !== undefined) this.#endWait = this.#source.watch(() => this.abort(this.reason));
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#endWait();
  }

  abort(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#endWait();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

function timeoutOf(clock: Clock, dueMs: number): Source {
  return {
    reasonNow: () => (clock.reachedMs >= dueMs ? TIMED_OUT : undefined),
    watch: (abort) => {
      const event: ClockEvent = clock.at(dueMs, abort);
      return () => {
        event.isCancelled = true;
      };
    },
  };
}

function anyOf(signals: readonly AbortSignal[]): Source {
  return {
    reasonNow: () => signals.find(({ aborted }) => aborted)?.reason,
    watch: (abort) => {
      for (const signal of signals) signal.addEventListener('abort', abort);
      return () => {
        for (const signal of signals) signal.removeEventListener('abort', abort);
      };
    },
  };
}

/** Replaces the signals of this process by those of a world. */
export function installSignals(clock: () => Clock): void {
  class Controller {
    readonly signal = new Signal();
    readonly abort = this.signal.abort.bind(this.signal);
  }
  const signalOf = (source: Source) => new Signal(source) as unknown as AbortSignal;
  Object.assign(globalThis, { AbortController: Controller });
  AbortSignal.timeout = (ms) => signalOf(timeoutOf(clock(), clock().nowMs + ms));
  AbortSignal.any = (signals) => signalOf(anyOf(signals));
}
