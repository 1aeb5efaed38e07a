import { formatAddress } from '../../lib/allocator/ip-address.ts';
import { type Network, rangeSize, usableOf } from '../../lib/allocator/network.ts';
import { type PickIndex, reservedAddresses } from '../../lib/allocator/range-allocator.ts';

/** The maximum number of addresses among which a random start is chosen, because `randomInt` accepts only limits below 2^48. */
const MOST_STARTS = 2n ** 47n;

/**
 * Yields the free addresses of `networks`. Static bands come first, because API servers allocate from them last: if
 * a hold is released before its Service is created, an API server is unlikely to give the address to another Service.
 * Each band begins at a random address, as in upstream.
 */
export function* freeAddresses(
  networks: readonly Network[],
  isTaken: (address: string) => boolean,
  pick: PickIndex,
): Generator<string> {
  for (const isStatic of [true, false]) {
    for (const network of networks) {
      const { first, last } = usableOf(network);
      const reserved = BigInt(reservedAddresses(Number(rangeSize(network))));
      const size = last - first + 1n;
      const band = isStatic
        ? fromRandomStart(first, reserved, pick)
        : fromRandomStart(first + reserved, size - reserved, pick);
      for (const value of band) {
        const address = formatAddress({ family: network.family, value });
        if (!isTaken(address)) yield address;
      }
    }
  }
}

function* fromRandomStart(first: bigint, size: bigint, pick: PickIndex): Generator<bigint> {
  if (size <= 0n) return;
  const start = BigInt(pick(Number(size < MOST_STARTS ? size : MOST_STARTS)));
  for (let step = 0n; step < size; step += 1n) yield first + ((start + step) % size);
}
