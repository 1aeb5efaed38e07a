import { formatAddress } from '../../lib/allocator/ip-address.ts';
import { type Network, rangeSize, usableOf } from '../../lib/allocator/network.ts';
import { type PickIndex, reservedAddresses } from '../../lib/allocator/range-allocator.ts';

/** The most addresses among which a random start is chosen, because `randomInt` accepts only limits below 2^48. */
const MOST_STARTS = 2n ** 47n;

/**
 * Yields the free addresses of ready networks. Static bands come first, because API servers allocate from them last: if
 * a hold is released before its Service is created, an API server is unlikely to give the address to another Service.
 * Each band begins at a random address, as in upstream.
 */
export function* freeAddresses(
  networks: readonly Network[],
  isTaken: (address: string) => boolean,
  pick: PickIndex,
): Generator<string> {
  for (const band of ['static', 'dynamic'] as const) {
    for (const network of networks) {
      for (const value of fromRandomStart(bandsOf(network)[band], pick)) {
        const address = formatAddress({ family: network.family, value });
        if (!isTaken(address)) yield address;
      }
    }
  }
}

function* fromRandomStart({ first, size }: Band, pick: PickIndex): Generator<bigint> {
  if (size <= 0n) return;
  const start = BigInt(pick(Number(size < MOST_STARTS ? size : MOST_STARTS)));
  for (let step = 0n; step < size; step += 1n) yield first + ((start + step) % size);
}

interface Band {
  readonly first: bigint;
  readonly size: bigint;
}

function bandsOf(network: Network): Readonly<Record<'static' | 'dynamic', Band>> {
  const { first, last } = usableOf(network);
  const reserved = BigInt(reservedAddresses(Number(rangeSize(network))));
  return {
    static: { first, size: reserved },
    dynamic: { first: first + reserved, size: last - first + 1n - reserved },
  };
}
