import { AllocatorError } from '../allocator/errors.ts';
import { parseAddress, parseIPv4 } from '../allocator/ip-address.ts';
import { ipNotInRange } from '../allocator/ip-range.ts';
import { firstUsable, hostBits, isUsableIn, lastUsable, type Network, networkOf } from '../allocator/network.ts';
import { type AuditLedger, auditLedger } from './audit.ts';
import type { ClaimResult, MakeRange } from './ledger.ts';

/** A network that a bitmap covers to its end. */
const MOST_BITMAP_HOST_BITS = 16;

/** An empty ledger of a service CIDR; an error when `cidr` is none. */
export function networkLedger(cidr: string, makeRange: MakeRange<string>): AuditLedger<string> | AllocatorError {
  const network = networkOf(cidr);
  if (network instanceof AllocatorError) return network;
  if (hostBits(network) > MOST_BITMAP_HOST_BITS) return new NetworkClaims(network);
  const range = makeRange(cidr);
  return range instanceof AllocatorError ? range : auditLedger(range);
}

/**
 * Claims on the whole of a network, as API servers from Kubernetes 1.33 on allocate: an IPv6 one does not end where a
 * bitmap would. The claims are a set, so that a /64 costs no more than what is claimed of it.
 */
class NetworkClaims implements AuditLedger<string> {
  readonly #network: Network;
  /** Numbers for IPv4, which are quick; bigints for IPv6. */
  readonly #claims = new Set<number | bigint>();
  readonly #first: number;
  readonly #last: number;

  constructor(network: Network) {
    this.#network = network;
    this.#first = Number(firstUsable(network));
    this.#last = Number(lastUsable(network));
  }

  get spec(): string {
    return this.#network.text;
  }

  /** No more than a number says exactly. */
  get max(): number {
    const usable = Number(lastUsable(this.#network) - firstUsable(this.#network) + 1n);
    return Math.min(usable, Number.MAX_SAFE_INTEGER);
  }

  get used(): number {
    return this.#claims.size;
  }

  get free(): number {
    return this.max - this.used;
  }

  claim(text: string): ClaimResult {
    const value = this.#usableValue(text);
    if (value === undefined) return ipNotInRange(text, this.spec);
    if (this.#claims.has(value)) return new AllocatorError('AlreadyAllocated', 'provided IP is already allocated');
    this.#claims.add(value);
    return 'recorded';
  }

  picture(): undefined {
    return undefined;
  }

  #usableValue(text: string): number | bigint | undefined {
    if (this.#network.family === 'IPv4') {
      const value = parseIPv4(text) ?? mappedIPv4(text);
      return value !== undefined && value >= this.#first && value <= this.#last ? value : undefined;
    }
    const address = parseAddress(text);
    return address && isUsableIn(this.#network, address) ? address.value : undefined;
  }
}

function mappedIPv4(text: string): number | undefined {
  const address = parseAddress(text);
  return address?.family === 'IPv4' ? Number(address.value) : undefined;
}
