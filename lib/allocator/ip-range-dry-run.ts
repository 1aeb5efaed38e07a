import type { AllocatorError } from './errors.ts';
import { formatAddress } from './ip-address.ts';
import { type IPRange, ipNotInRange } from './ip-range.ts';
import type { RangeAllocator } from './range-allocator.ts';

/** What can be asked of a dry run: all but snapshots. */
type DryRunnable = Omit<RangeAllocator<string>, 'snapshot' | 'restore'>;

/**
 * Answers a request that is only tried (`dryRunRange` of `ipallocator/bitmap.go`): the range stays as it is, an address
 * is refused only for being outside, also when it is taken, and the next one is always the network's own.
 */
export class IPRangeDryRun implements DryRunnable {
  readonly #range: IPRange;

  constructor(range: IPRange) {
    this.#range = range;
  }

  get spec(): string {
    return this.#range.spec;
  }

  get max(): number {
    return this.#range.max;
  }

  get reserved(): number {
    return this.#range.reserved;
  }

  get free(): number {
    return this.#range.free;
  }

  get used(): number {
    return this.#range.used;
  }

  indexOf(address: string): number | undefined {
    return this.#range.indexOf(address);
  }

  itemAt(index: number): string {
    return this.#range.itemAt(index);
  }

  itemOf(text: string): string | undefined {
    return this.#range.itemOf(text);
  }

  allocate(address: string): AllocatorError | undefined {
    return this.#range.indexOf(address) === undefined ? ipNotInRange(address, this.spec) : undefined;
  }

  allocateNext(): { readonly item: string } {
    const { family, base } = this.#range.network;
    return { item: formatAddress({ family, value: base }) };
  }

  /** Nothing was taken. */
  release(_address: string): void {}

  has(address: string): boolean {
    return this.#range.has(address);
  }

  items(): Iterable<string> {
    return this.#range.items();
  }
}
