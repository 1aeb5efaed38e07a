import { addressNumbering } from './address-numbering.ts';
import { BitmapRange, type RangeKind } from './bitmap-range.ts';
import { AllocatorError } from './errors.ts';
import { canonicalAddress, type IPFamily } from './ip-address.ts';
import { type Network, networkOf, rangeSize } from './network.ts';
import type { Pick } from './range-allocator.ts';
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
export class IPRange extends BitmapRange<string> {
  readonly network: Network;

  constructor(network: Network, pick: Pick) {
    super(addressesOf(network), pick);
    this.network = network;
  }

  get family(): IPFamily {
    return this.network.family;
  }
}

export function ipRangeOf(cidr: string, pick: Pick): IPRange | AllocatorError {
  const network = networkOf(cidr);
  return network instanceof AllocatorError ? network : new IPRange(network, pick);
}

/** Names the address canonically, and what is no address as it came. */
export function ipNotInRange(address: string, spec: string): AllocatorError {
  const shown = canonicalAddress(address) ?? address;
  return new AllocatorError(
    'NotInRange',
    `the provided IP (${shown}) is not in the valid range. The range of valid IPs is ${spec}`,
  );
}

function addressesOf(network: Network): RangeKind<string> {
  const numbering = addressNumbering(network);
  const max = usableAddresses(network);
  return {
    spec: network.text,
    max,
    reserved: reservedAddresses(Number(rangeSize(network))),
    indexOf: (address) => {
      const index = numbering.numberOf(address) - 1;
      return index >= 0 && index < max ? index : undefined;
    },
    itemAt: (index) => numbering.addressAt(index + 1),
    parse: (text) => text,
    notInRange: (address) => ipNotInRange(address, network.text),
    alreadyAllocated: () => new AllocatorError('AlreadyAllocated', 'provided IP is already allocated'),
    mismatch: (range) => {
      const other = networkOf(range);
      if (other instanceof AllocatorError) return other;
      if (other.text === network.text) return undefined;
      return new AllocatorError('MismatchedRange', 'the provided network does not match the current range');
    },
  };
}

/** Without the network's own address and IPv4's broadcast. */
function usableAddresses(network: Network): number {
  const size = Number(rangeSize(network));
  return Math.max(0, network.family === 'IPv4' ? size - 2 : Math.min(size, MOST_IPV6_ADDRESSES) - 1);
}
