import { parseAddress } from '../allocator/ip-address.ts';
import { ipAlreadyAllocated, ipNotInRange } from '../allocator/ip-range.ts';
import { hostBits, isUsableIn, type Network, parseCidr, usableSize } from '../allocator/network.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { RangeSnapshot } from '../allocator/snapshot-bytes.ts';
import { emptyRange, NO_STRIKES, type StoredRange, sameRange } from '../range/stored-range.ts';
import type { RangeKey } from '../spec/spec-ranges.ts';
import type { ClaimedRange, RangeWords } from './claims.ts';
import { nothingFree } from './compare-range.ts';

/** A usage bitmap with more bits than this is not saved. */
const MOST_BITMAP_BITS = 65_536;
/** A network with more host bits than this has no usage bitmap. */
const MOST_BITMAP_HOST_BITS = 16;

/** The claims of Services on a range from which API servers allocate. Each item in the range can be claimed once. */
export interface AuditedRange extends ClaimedRange {
  /** Returns the number of claimed items, and the number of items that an API server may still allocate. */
  counts(): { readonly allocated: number; readonly free: number; readonly capacity: number };
  /** Returns the claims as a bitmap for range maps; `undefined` if the range is too large. */
  usageBitmap(): RangeSnapshot | undefined;
}

/** Returns the findings and counts of a range, and in `next` the bitmap to save, if it has changed. */
export function auditRange(
  range: AuditedRange,
  words: RangeWords,
  stored: StoredRange | undefined,
  generation: number,
) {
  const counts = range.counts();
  const bitmap = range.usageBitmap();
  const kept = { strikes: NO_STRIKES, holds: [], unclaimed: [] };
  const next: StoredRange | undefined = bitmap && { ...bitmap, allocator: 'apiserver', generation, ...kept };
  return {
    findings: nothingFree(words, range.spec, counts),
    next: stored && next && sameRange(stored, next) ? undefined : next,
    counts,
  };
}

/** Returns a range without claims, or a refusal if the text is not a range. */
export function startAudit(key: RangeKey, text: string): AuditedRange | Refusal {
  const network = parseCidr(text);
  if (network !== undefined && hostBits(network) > MOST_BITMAP_HOST_BITS) return wholeNetwork(network);
  const range = emptyRange(key, text);
  if (isRefused(range)) return range;
  return {
    spec: range.spec,
    counts: () => ({ allocated: range.used, free: range.free, capacity: range.max }),
    claim: (item) => range.allocate(item) ?? 'recorded',
    usageBitmap: () => (range.max <= MOST_BITMAP_BITS ? range.snapshot() : undefined),
  };
}

/** Returns the audit of a network that is too large for a bitmap, such as an IPv6 network. Uses memory only for the claims. */
function wholeNetwork(network: Network): AuditedRange {
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
