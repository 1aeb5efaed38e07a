import { usableSize } from '../allocator/intervals.ts';
import { parseAddress } from '../allocator/ip-address.ts';
import { ipAlreadyAllocated, ipNotInRange } from '../allocator/ip-range.ts';
import { hostBits, isUsableIn, type Network, networkOf } from '../allocator/network.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { RangeSnapshot } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { NO_STRIKES, type StoredRange, sameRange } from '../range/stored-range.ts';
import type { RangeWords } from './claim-findings.ts';
import { nothingFree } from './compare-range.ts';
import type { Ledger, MakeRange } from './walk.ts';

/** A larger usage bitmap is not kept. */
const MOST_BITMAP_BITS = 65_536;
/** The largest network that a bitmap covers completely. */
const MOST_BITMAP_HOST_BITS = 16;

/**
 * The claims of Services on a range that the cluster's own API servers allocate. The first claim of an item in the
 * range is good.
 */
export interface AuditLedger<Item> extends Ledger<Item> {
  /** Returns the number of claimed items, and of those that an API server may allocate. */
  counts(): Audit['counts'];
  /** Returns the claims as bits, for maps; undefined if the range has too many. */
  usageBitmap(): RangeSnapshot | undefined;
}

export interface Audit {
  readonly findings: readonly Finding[];
  /** The usage bitmap to save. Undefined if there is none, or it is unchanged. */
  readonly next: StoredRange | undefined;
  readonly counts: {
    readonly allocated: number;
    readonly free: number;
    readonly capacity: number;
  };
}

/** Returns the findings and figures of a range. New or removed claims are no findings: the API servers allocate. */
export function auditRange<Item>(
  ledger: AuditLedger<Item>,
  words: RangeWords,
  stored: StoredRange | undefined,
  generation: number,
): Audit {
  const counts = ledger.counts();
  const bitmap = ledger.usageBitmap();
  const kept = { strikes: NO_STRIKES, holds: [], unclaimed: [] };
  const next = bitmap && { ...bitmap, allocator: 'apiserver' as const, generation, ...kept };
  return {
    findings: nothingFree(words, ledger.spec, counts),
    next: stored && next && sameRange(stored, next) ? undefined : next,
    counts,
  };
}

/** Returns the ledger of an empty range, which the claims fill. */
export function auditLedger<Item>(range: RangeAllocator<Item>): AuditLedger<Item> {
  return {
    spec: range.spec,
    counts: () => ({ allocated: range.used, free: range.free, capacity: range.max }),
    claim: (item) => range.allocate(item) ?? 'recorded',
    usageBitmap: () => (range.max <= MOST_BITMAP_BITS ? range.snapshot() : undefined),
  };
}

/** Returns an empty ledger of a service CIDR; an error if `cidr` does not parse. */
export function networkLedger(cidr: string, makeRange: MakeRange<string>): AuditLedger<string> | Refusal {
  const network = networkOf(cidr);
  if (isRefused(network)) return network;
  if (hostBits(network) > MOST_BITMAP_HOST_BITS) return wholeNetworkLedger(network);
  const range = makeRange(cidr);
  return isRefused(range) ? range : auditLedger(range);
}

/**
 * Returns a ledger of a whole network, because API servers from Kubernetes 1.33 on allocate all of an IPv6 network, not
 * only the part that fits into a bitmap. The claims are a set, so that memory depends on the claims, not the network.
 */
function wholeNetworkLedger(network: Network): AuditLedger<string> {
  const claims = new Set<bigint>();
  const capacity = usableSize(network);
  return {
    spec: network.text,
    counts: () => ({ allocated: claims.size, free: capacity - claims.size, capacity }),
    claim: (text) => {
      const address = parseAddress(text);
      if (address === undefined || !isUsableIn(network, address)) return ipNotInRange(text, network.text);
      if (claims.has(address.value)) return ipAlreadyAllocated();
      claims.add(address.value);
      return 'recorded';
    },
    usageBitmap: () => undefined,
  };
}
