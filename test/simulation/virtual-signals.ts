import type { Clock, ClockEvent } from './clock.ts';

type Listener = () => void;

/** An `AbortSignal` of the world. Node's own take a large part of a run. */
class Signal {
  readonly #listeners = new Set<Listener>();
  #reason: unknown;

  get reason(): unknown {
    return this.#reason;
  }

  get aborted(): boolean {
    return this.reason !== undefined;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_: 'abort', listener: Listener): void {
    if (this.#listeners.size === 0 && !this.aborted) this.watch();
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: Listener): void {
    if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.unwatch();
  }

  abort(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.unwatch();
    for (const listener of listeners) listener();
  }

  /** Begins to wait for the abort, because a listener waits for it. */
  protected watch(): void {}

  protected unwatch(): void {}
}

/** One error for all timeouts, because creating a stack trace for each would cost more than the call that it ends. */
const TIMED_OUT = new DOMException('timed out', 'TimeoutError');

/** A time limit, which is an event of the clock only while a listener waits for it. */
class TimeoutSignal extends Signal {
  readonly #clock: Clock;
  readonly #dueMs: number;
  #end: ClockEvent | undefined;

  constructor(clock: Clock, ms: number) {
    super();
    this.#clock = clock;
    this.#dueMs = clock.nowMs + ms;
  }

  override get reason(): unknown {
    return this.#clock.reachedMs >= this.#dueMs ? TIMED_OUT : undefined;
  }

  protected override watch(): void {
    this.#end = this.#clock.at(this.#dueMs, () => this.abort(TIMED_OUT));
  }

  protected override unwatch(): void {
    if (this.#end !== undefined) this.#end.isCancelled = true;
  }
}

/** A signal that aborts with the first of several. */
class AnySignal extends Signal {
  readonly #sources: readonly AbortSignal[];
  readonly #forward = () => this.abort(this.reason);

  constructor(sources: readonly AbortSignal[]) {
    super();
    this.#sources = sources;
  }

  override get reason(): unknown {
    return this.#sources.find(({ aborted }) => aborted)?.reason;
  }

  protected override watch(): void {
    for (const source of this.#sources) source.addEventListener('abort', this.#forward);
  }

  protected override unwatch(): void {
    for (const source of this.#sources) source.removeEventListener('abort', this.#forward);
  }
}

class Controller {
  readonly signal = new Signal() as unknown as AbortSignal;

  abort(reason: unknown): void {
    (this.signal as unknown as Signal).abort(reason);
  }
}

/** Replaces the signals of this process by those of a world. */
export function installSignals(clock: () => Clock): void {
  Object.assign(globalThis, { AbortController: Controller });
  AbortSignal.timeout = (ms) => new TimeoutSignal(clock(), ms) as unknown as AbortSignal;
  AbortSignal.any = (sources) => new AnySignal(sources) as unknown as AbortSignal;
}
