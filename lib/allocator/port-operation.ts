import type { AllocatorError } from './errors.ts';
import { portAlreadyAllocated } from './port-range.ts';
import type { RangeAllocator } from './range-allocator.ts';

/**
 * The ports of one request (`pkg/registry/core/service/portallocator/operation.go`). It is better to leak a port than
 * to give it to two Services: allocations happen at once, releases only on commit.
 *
 * Start it, allocate, write the Service, `commit`, and `finish` in any case: what was not committed is rolled back.
 */
interface PortOperation {
  /** `undefined` when the port is now this operation's. */
  allocate(port: number): AllocatorError | undefined;
  allocateNext(): { readonly item: number } | AllocatorError;
  /** The port is released when the operation is committed. */
  releaseDeferred(port: number): void;
  commit(): void;
  /** Releases what was allocated; twice does no harm. */
  rollback(): void;
  /** Rolls back what was not committed. */
  finish(): void;
}

export class LivePortOperation implements PortOperation {
  readonly #range: RangeAllocator<number>;
  readonly #allocated: number[] = [];
  readonly #released: number[] = [];
  #committed = false;

  constructor(range: RangeAllocator<number>) {
    this.#range = range;
  }

  allocate(port: number): AllocatorError | undefined {
    const refusal = this.#range.allocate(port);
    if (refusal === undefined) this.#allocated.push(port);
    return refusal;
  }

  allocateNext(): { readonly item: number } | AllocatorError {
    const next = this.#range.allocateNext();
    if ('item' in next) this.#allocated.push(next.item);
    return next;
  }

  releaseDeferred(port: number): void {
    this.#released.push(port);
  }

  commit(): void {
    for (const port of this.#released) this.#range.release(port);
    this.#committed = true;
  }

  rollback(): void {
    for (const port of this.#allocated) this.#range.release(port);
  }

  finish(): void {
    if (!this.#committed) this.rollback();
  }
}

/** The next port of a dry run is one after this when it has allocated none. */
const DRY_RUN_START = 32_768;

/** The original looks for a free port only below this, where no node port is; kept, as it shows in dry-run answers. */
const DRY_RUN_SEARCH_END = 100;

/**
 * An operation that is only tried: the range stays as it is. A port is refused only when it is taken, by the range or
 * by this operation, not when it is outside; the next port is made up.
 */
export class DryRunPortOperation implements PortOperation {
  readonly #range: RangeAllocator<number>;
  readonly #allocated = new Set<number>();

  constructor(range: RangeAllocator<number>) {
    this.#range = range;
  }

  allocate(port: number): AllocatorError | undefined {
    if (this.#isTaken(port)) return portAlreadyAllocated();
    this.#allocated.add(port);
    return undefined;
  }

  allocateNext(): { readonly item: number } {
    const after = this.#allocated.size === 0 ? DRY_RUN_START : Math.max(0, ...this.#allocated);
    const item = this.#freePortBelowSearchEnd(after + 1) ?? after + 1;
    this.#allocated.add(item);
    return { item };
  }

  releaseDeferred(_port: number): void {}

  commit(): void {}

  rollback(): void {}

  finish(): void {}

  #freePortBelowSearchEnd(from: number): number | undefined {
    for (let port = from; port < DRY_RUN_SEARCH_END; port++) {
      if (!this.#isTaken(port)) return port;
    }
    return undefined;
  }

  #isTaken(port: number): boolean {
    return this.#allocated.has(port) || this.#range.has(port);
  }
}
