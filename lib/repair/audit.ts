import { AllocatorError } from '../allocator/errors.ts';
import { parseAddress, parseIPv4 } from '../allocator/ip-address.ts';
import { ipNotInRange } from '../allocator/ip-range.ts';
import { firstUsable, hostBits, isUsableIn, lastUsable, type Network, networkOf } from '../allocator/network.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { popCount, type RangeSnapshot, subtract } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { NO_STRIKES, type StoredRange } from '../cluster/stored-range.ts';
import type { RangeWords } from './claim-findings.ts';
import { nothingFree, sameRange } from './compare-range.ts';
import type { ClaimResult, Ledger, MakeRange } from './walk.ts';

/** A usage bitmap of more bits is not kept. */
const MOST_BITMAP_BITS = 65_536;
/** A network that a bitmap covers to its end. */
const MOST_BITMAP_HOST_BITS = 16;

/**
 * What Services claim of a range whose record is out of reach, because the cluster's own API servers allocate. Every
 * claim that is in the range and the first of its item is good.
 */
export interface AuditLedger<Item> extends Ledger<Item> {
  /** Items that an API server may allocate. */
  readonly max: number;
  readonly used: number;
  readonly free: number;
  /** The claims as bits, for maps; undefined where the range has too many. */
  usageBitmap(): RangeSnapshot | undefined;
}

export interface Audit {
  readonly findings: readonly Finding[];
  /** The usage bitmap to save. Undefined when there is none, or it is the one that is stored. */
  readonly next: StoredRange | undefined;
  readonly counts: {
    readonly allocated: number;
    readonly free: number;
    readonly capacity: number;
    /** Against the stored usage bitmap, where there is one. */
    readonly newClaims?: number;
    readonly goneClaims?: number;
  };
}

/** Returns the findings and figures of a range, without a warning of claims that are new or gone: the API servers made them. */
export function auditRange<Item>(
  ledger: AuditLedger<Item>,
  words: RangeWords,
  stored: StoredRange | undefined,
  generation: number,
): Audit {
  const bitmap = ledger.usageBitmap();
  const next = bitmap && { ...bitmap, allocator: 'apiserver' as const, generation, strikes: NO_STRIKES, holds: [] };
  return {
    findings: nothingFree(words, ledger),
    next: stored && next && sameRange(stored, next) ? undefined : next,
    counts: { allocated: ledger.used, free: ledger.free, capacity: ledger.max, ...changedClaims(stored, next) },
  };
}

function changedClaims(stored: StoredRange | undefined, next: StoredRange | undefined): Partial<Audit['counts']> {
  if (next === undefined || stored?.allocator !== 'apiserver' || stored.range !== next.range) return {};
  return {
    newClaims: popCount(subtract(next.data, stored.data)),
    goneClaims: popCount(subtract(stored.data, next.data)),
  };
}

/** Returns the ledger of an empty range, which the claims fill. */
export function auditLedger<Item>(range: RangeAllocator<Item>): AuditLedger<Item> {
  return {
    spec: range.spec,
    max: range.max,
    get used() {
      return range.used;
    },
    get free() {
      return range.free;
    },
    claim: (item) => range.allocate(item) ?? 'recorded',
    usageBitmap: () => (range.max <= MOST_BITMAP_BITS ? range.snapshot() : undefined),
  };
}

/** Returns an empty ledger of a service CIDR; an error when `cidr` is none. */
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

  usageBitmap(): undefined {
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
