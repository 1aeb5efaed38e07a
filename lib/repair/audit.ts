import type { RangeAllocator, RangeSnapshot } from '../allocator/range-allocator.ts';
import { popCount, subtract } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { NO_STRIKES, type StoredRange } from '../cluster/stored-range.ts';
import { nothingFree, type RangeWords, sameRange } from './compare.ts';
import type { Ledger } from './ledger.ts';

/** A picture of more bits is not kept. */
const MOST_PICTURED_BITS = 65_536;

/**
 * What Services claim of a range whose record is out of reach, because the cluster's own API servers allocate. Every
 * claim that is in the range and the first of its item is good.
 */
export interface AuditLedger<Item> extends Ledger<Item> {
  /** Items that an API server may allocate. */
  readonly max: number;
  readonly used: number;
  readonly free: number;
  /** The claims as bits, for those who draw maps; undefined where the range has too many. */
  picture(): RangeSnapshot | undefined;
}

export interface Audit {
  readonly findings: readonly Finding[];
  /** The picture to keep. Undefined when there is none, or it is the one that is stored. */
  readonly next: StoredRange | undefined;
  readonly counts: {
    readonly allocated: number;
    readonly free: number;
    readonly capacity: number;
    /** Against the stored picture, where there is one. */
    readonly newClaims?: number;
    readonly goneClaims?: number;
  };
}

/** `range` is empty and is filled by the claims. */
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
    picture: () => (range.max <= MOST_PICTURED_BITS ? range.snapshot() : undefined),
  };
}

/** Claims come and go without this project's doing: they are counted, and nobody is warned of them. */
export function auditRange<Item>(
  ledger: AuditLedger<Item>,
  words: RangeWords,
  stored: StoredRange | undefined,
  generation: number,
): Audit {
  const picture = ledger.picture();
  const next = picture && { ...picture, allocator: 'apiserver' as const, generation, strikes: NO_STRIKES, holds: [] };
  return {
    findings: nothingFree(words, ledger),
    next: stored && next && sameRange(stored, next) ? undefined : next,
    counts: { allocated: ledger.used, free: ledger.free, capacity: ledger.max, ...comings(stored, next) },
  };
}

function comings(stored: StoredRange | undefined, next: StoredRange | undefined): Partial<Audit['counts']> {
  if (next === undefined || stored?.allocator !== 'apiserver' || stored.range !== next.range) return {};
  return {
    newClaims: popCount(subtract(next.data, stored.data)),
    goneClaims: popCount(subtract(stored.data, next.data)),
  };
}
