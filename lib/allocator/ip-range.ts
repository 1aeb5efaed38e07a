import { type AddressNumbering, addressNumbering } from './address-numbering.ts';
import { AllocationBitmap } from './bitmap.ts';
import { AllocatorError, rangeIsFull } from './errors.ts';
import { canonicalAddress, type IPFamily } from './ip-address.ts';
import { type Network, networkOf, rangeSize } from './network.ts';
import type { Pick, RangeAllocator, RangeSnapshot } from './range-allocator.ts';
import { reservedAddresses } from './reserved-band.ts';

/** An IPv6 bitmap covers no more than the first addresses of its network. */
const MOST_IPV6_ADDRESSES = 65_536;

/**
 * The cluster IPs of one network (`pkg/registry/core/service/ipallocator/bitmap.go`):
 *
 *     10.0.0.0/24      .0        .1 ... .16        .17 ... .254       .255
 *                   network    reserved band     dynamic band      broadcast
 *     bit                       0 ... 15          16 ... 253
 *
 * IPv6 has no broadcast address, and its bits end at 65,535 addresses. Items are address texts: canonical when given
 * out, any that parses when asked for.
 */
export class IPRange implements RangeAllocator<string> {
  readonly network: Network;
  readonly #bitmap: AllocationBitmap;
  readonly #numbering: AddressNumbering;

  constructor(network: Network, pick: Pick) {
    this.network = network;
    this.#numbering = addressNumbering(network);
    this.#bitmap = new AllocationBitmap({
      max: usableAddresses(network),
      spec: network.text,
      reserved: reservedAddresses(Number(rangeSize(network))),
      pick,
    });
  }

  get spec(): string {
    return this.network.text;
  }

  get family(): IPFamily {
    return this.network.family;
  }

  get max(): number {
    return this.#bitmap.max;
  }

  get reserved(): number {
    return this.#bitmap.reserved;
  }

  get free(): number {
    return this.#bitmap.free;
  }

  get used(): number {
    return this.#bitmap.used;
  }

  indexOf(address: string): number | undefined {
    const index = this.#numbering.numberOf(address) - 1;
    return index >= 0 && index < this.max ? index : undefined;
  }

  itemAt(index: number): string {
    return this.#numbering.addressAt(index + 1);
  }

  allocate(address: string): AllocatorError | undefined {
    const index = this.indexOf(address);
    if (index === undefined) return ipNotInRange(address, this.spec);
    const taken = this.#bitmap.allocate(index);
    if (taken === true) return undefined;
    return taken === false ? new AllocatorError('AlreadyAllocated', 'provided IP is already allocated') : taken;
  }

  allocateNext(): { readonly item: string } | AllocatorError {
    const index = this.#bitmap.allocateNext();
    return index === undefined ? rangeIsFull() : { item: this.itemAt(index) };
  }

  release(address: string): void {
    const index = this.indexOf(address);
    if (index !== undefined) this.#bitmap.release(index);
  }

  has(address: string): boolean {
    const index = this.indexOf(address);
    return index !== undefined && this.#bitmap.has(index);
  }

  *items(): Generator<string, void, undefined> {
    for (const index of this.#bitmap.items()) yield this.itemAt(index);
  }

  snapshot(): RangeSnapshot {
    return this.#bitmap.snapshot();
  }

  restore(snapshot: RangeSnapshot): AllocatorError | undefined {
    const network = networkOf(snapshot.range);
    if (network instanceof AllocatorError) return network;
    if (network.text !== this.spec) {
      return new AllocatorError('MismatchedRange', 'the provided network does not match the current range');
    }
    return this.#bitmap.restore({ range: this.spec, data: snapshot.data });
  }
}

export function ipRangeOf(cidr: string, pick: Pick): IPRange | AllocatorError {
  const network = networkOf(cidr);
  return network instanceof AllocatorError ? network : new IPRange(network, pick);
}

/** The range that the snapshot names, with what it says is taken. */
export function ipRangeFromSnapshot(snapshot: RangeSnapshot, pick: Pick): IPRange | AllocatorError {
  const range = ipRangeOf(snapshot.range, pick);
  if (range instanceof AllocatorError) return range;
  return range.restore(snapshot) ?? range;
}

/** Names the address canonically, and what is no address as it came. */
export function ipNotInRange(address: string, spec: string): AllocatorError {
  const shown = canonicalAddress(address) ?? address;
  return new AllocatorError(
    'NotInRange',
    `the provided IP (${shown}) is not in the valid range. The range of valid IPs is ${spec}`,
  );
}

/** Without the network's own address and IPv4's broadcast. */
function usableAddresses(network: Network): number {
  const size = Number(rangeSize(network));
  return Math.max(0, network.family === 'IPv4' ? size - 2 : Math.min(size, MOST_IPV6_ADDRESSES) - 1);
}
