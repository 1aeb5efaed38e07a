import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import { bitsOf, fromBits, popCount, subtract, union } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { type Hold, holdsByItem, isSurelyOver, mayClaim, withoutHolds } from '../range/hold.ts';
import type { EndedHold, RangeDecision } from '../range/merge.ts';
import { emptyRange, NO_STRIKES, type StoredRange, sameRange, unseenOf } from '../range/stored-range.ts';
import type { RangeKey } from '../spec/spec-ranges.ts';
import type { ClaimedRange, ClaimResult, RangeWords } from './claims.ts';
import { type JudgingPass, judgeLeaks, type Leftover } from './leaks.ts';

/** The claims of Services on one range, and the stored range, which was read before the Services were listed. */
export interface Rebuild extends ClaimedRange {
  /** The stored range as it was read; `undefined` if there was none, or only the usage bitmap of an audit. */
  readonly stored: StoredRange | undefined;
  /** The taken items of `stored`, with their bit numbers in the stored range. */
  readonly recorded: RangeAllocator;
  /** The claims of Services, with their bit numbers in the range of the spec. */
  readonly rebuilt: RangeAllocator;
  /** The Service of each item that has a hold, by the bit number of the item in the range of the spec. */
  readonly holders: ReadonlyMap<number, ServiceClaim>;
}

export interface Comparison extends RangeDecision {
  readonly findings: readonly Finding[];
  readonly changed: boolean;
  /**
   * True if the decision frees an item, ends a hold, opens a range for allocation, or discards strikes that were counted
   * from the Services of another control plane. The list of Services must then come from the current control plane.
   */
  readonly needsFreshList: boolean;
  readonly counts: Readonly<
    Record<'allocated' | 'free' | 'capacity' | 'leaks' | 'mayHaveLeaked' | 'held' | 'holdsEnded', number>
  >;
}

/** Returns the recorded items, or a refusal if the text of the range does not parse. If nothing is stored, no item is recorded. */
export function recordedRange(
  key: RangeKey,
  configured: string,
  stored: StoredRange | undefined,
): RangeAllocator | Refusal {
  const range = emptyRange(key, stored?.range || configured);
  if (stored !== undefined && !isRefused(range)) range.restore(stored.data);
  return range;
}

/** Starts to rebuild a range from the claims of Services. Returns a refusal if the configured or stored range does not parse. */
export function startRebuild(key: RangeKey, configured: string, stored: StoredRange | undefined): Rebuild | Refusal {
  const recorded = recordedRange(key, configured, stored);
  const rebuilt = emptyRange(key, configured);
  if (isRefused(recorded)) return recorded;
  if (isRefused(rebuilt)) return rebuilt;
  const held = new Set(bitsOfHolds(stored, rebuilt));
  const holders = new Map<number, ServiceClaim>();
  const claim = (item: string, by: ServiceClaim): ClaimResult => {
    const refusal = rebuilt.allocate(item);
    if (refusal !== undefined) return refusal;
    const bit = held.size > 0 ? rebuilt.indexOf(item) : undefined;
    if (bit !== undefined && held.has(bit)) holders.set(bit, by);
    return recorded.has(item) ? 'recorded' : 'notRecorded';
  };
  return { spec: rebuilt.spec, stored, recorded, rebuilt, holders, claim };
}

function bitsOfHolds(stored: StoredRange | undefined, range: RangeAllocator): number[] {
  return [...holdsByItem(stored?.holds ?? []).keys()].flatMap((text) => range.indexOf(text) ?? []);
}

/** Returns whether the strikes are from another control plane than the list of Services, because the cluster moved in between. */
function isByAnother({ strikes: { last } }: StoredRange, { controlPlane }: JudgingPass): boolean {
  return last?.controlPlane !== undefined && last.controlPlane !== controlPlane;
}

/**
 * Compares the claims with the stored range (`doRunOnce` in
 * `pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`). Returns in `next` the range to save.
 */
export function compareRange(rebuild: Rebuild, words: RangeWords, pass: JudgingPass, generation: number): Comparison {
  const { stored, rebuilt, holders } = rebuild;
  const { range, data: proved } = rebuilt.snapshot();
  const holds = judgeHolds(stored?.holds ?? [], rebuilt, holders, words.item, pass);
  const leftovers = leftoversOf(rebuild, proved);
  const leaks = judgeLeaks(leftovers, rebuilt, words.item, stored?.strikes ?? NO_STRIKES, pass);
  const data = union(union(proved, holds.kept), leaks.kept);
  const unclaimed = stored?.range === range ? unseenOf(stored.unclaimed, data, proved) : [];
  const kept = { strikes: leaks.strikes, holds: holds.holds, unclaimed };
  const next: StoredRange = { range, data, allocator: 'table', generation, ...kept };
  const allocated = popCount(data);
  const free = rebuilt.max - allocated;
  return {
    findings: [...holds.findings, ...leaks.findings, ...nothingFree(words, range, { free, capacity: rebuilt.max })],
    next,
    changed: stored === undefined || !sameRange(stored, next),
    needsFreshList:
      stored?.generation !== generation || leaks.counts.leaks + holds.ended.length > 0 || isByAnother(stored, pass),
    proved,
    freed: leaks.freed,
    ended: holds.ended,
    bitOf: (text) => rebuilt.indexOf(text),
    counts: { allocated, free, capacity: rebuilt.max, ...leaks.counts, ...holds.counts },
  };
}

/** Returns a finding if the range has no free item: the API server or the table will refuse the next Service. */
export function nothingFree(
  words: RangeWords,
  range: string,
  { free, capacity }: { readonly free: number; readonly capacity: number },
): Finding[] {
  if (free > 0) return [];
  const message = `nothing is free in the ${words.range} ${range}, which has room for ${capacity}; widen it in the cluster spec to create new Services`;
  return [{ type: 'nothingFree', message }];
}

/** Returns the recorded items that no Service claims and that are not held, in ascending order. */
function* leftoversOf({ stored, recorded, rebuilt }: Rebuild, proved: Uint8Array): Generator<Leftover> {
  const { data } = recorded.snapshot();
  const isSameRange = recorded.spec === rebuilt.spec;
  const unclaimed = isSameRange ? subtract(data, proved) : data;
  for (const recordedBit of bitsOf(subtract(unclaimed, fromBits(bitsOfHolds(stored, recorded))))) {
    const item = recorded.itemAt(recordedBit);
    if (isSameRange || !rebuilt.has(item)) yield { item, recordedBit };
  }
}

/**
 * Decides about the holds of a range after all claims were entered. Frees an item without a Service if its hold had surely ended
 * before the range was read: a Service that claimed the hold would be in the list. `holders` has the Service of each claimed bit
 * with a hold.
 */
function judgeHolds(
  stored: readonly Hold[],
  range: Pick<RangeAllocator, 'indexOf' | 'spec'>,
  holders: ReadonlyMap<number, ServiceClaim>,
  noun: string,
  { nowMs, mayFree }: Pick<JudgingPass, 'nowMs' | 'mayFree'>,
) {
  const findings: Finding[] = [];
  const ended: EndedHold[] = [];
  const kept: number[] = [];
  for (const [item, hold] of holdsByItem(stored)) {
    const bit = range.indexOf(item);
    const holder = bit === undefined ? undefined : holders.get(bit);
    if (mayFree && isEnding(hold, holder, nowMs)) {
      ended.push({ item, hold, freedBit: holder === undefined ? bit : undefined });
    } else if (bit === undefined) {
      ended.push({ item, hold, freedBit: undefined });
      findings.push(outOfRange(noun, item, hold, range.spec));
    } else {
      kept.push(bit);
      if (holder !== undefined) findings.push(heldByAnother(noun, item, hold, holder));
    }
  }
  const endedItems = ended.map(({ item }) => item);
  return {
    findings,
    holds: withoutHolds(stored, endedItems),
    kept: fromBits(kept),
    ended,
    // `holdsEnded`: the items that this pass frees because their holds expired.
    counts: { held: kept.length, holdsEnded: ended.filter(({ freedBit }) => freedBit !== undefined).length },
  };
}

function isEnding(hold: Hold, holder: ServiceClaim | undefined, nowMs: number): boolean {
  return isSurelyOver(hold, nowMs) || (holder !== undefined && mayClaim(hold, holder.holdOwner));
}

function heldByAnother(noun: string, item: string, { owner }: Hold, { namespace, name }: ServiceClaim): Finding {
  const service = `${namespace}/${name}`;
  return {
    type: 'heldByAnother',
    message: `the ${noun} ${item} for service ${service} is held by ${owner}, and the Service does not have its label. Label it "${HOLD_OWNER_LABEL}: ${owner}", and the next pass ends the hold; or recreate the Service`,
    item,
    service,
  };
}

function outOfRange(noun: string, item: string, { owner }: Hold, range: string): Finding {
  const message = `the ${noun} ${item} is held by ${owner} and is not in ${range}, the range that the cluster spec has now: its hold ends`;
  return { type: 'other', message, item };
}
