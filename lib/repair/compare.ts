import { bitsOf, equalBits, fromBits, hasBit, subtract } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { sameHolds } from '../cluster/hold.ts';
import { type Given, keepGiven, type StoredRange, sameGiven } from '../cluster/stored-range.ts';
import { bitOf } from './held-items.ts';
import { type EndedHold, type JudgedHolds, judgeHolds } from './judge-holds.ts';
import { LeakJudge } from './leak-judge.ts';
import type { Rebuild } from './rebuild.ts';
import type { Turn } from './strikes.ts';

/** What a range and its items are called. */
export interface RangeWords {
  /** `cluster IP`, `node port`. */
  readonly item: string;
  /** `service CIDR`, `port range`. */
  readonly range: string;
}

/** What is to become of one range. Bits are numbered by `next`. */
export interface Comparison {
  readonly findings: readonly Finding[];
  readonly next: StoredRange;
  /** Whether `next` says anything that the stored range does not. */
  readonly changed: boolean;
  /** What the Services prove to be taken. */
  readonly proved: Uint8Array;
  /** What this pass frees as leaked. */
  readonly freed: Uint8Array;
  /** Holds that it ends. */
  readonly ended: readonly EndedHold[];
  /** The bit of a held item; undefined when it is not in the range. */
  readonly bitOf: (text: string) => number | undefined;
  readonly counts: {
    readonly allocated: number;
    readonly free: number;
    readonly capacity: number;
    /** Leaks that this pass frees. */
    readonly leaks: number;
    /** Items without a Service that it leaves taken, with a strike or two. */
    readonly mayHaveLeaked: number;
  } & JudgedHolds['counts'];
}

/**
 * Compares what the claims prove with what was recorded (`doRunOnce` in
 * `pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`): what is recorded without a Service
 * stays taken for two strikes, and the third frees it. What is held is no leak: it stays for as long as its hold does.
 * Enters what stays into `rebuild.rebuilt`.
 * @param generation of the spec, stamped on `next`
 */
export function compareRange<Item>(
  rebuild: Rebuild<Item>,
  words: RangeWords,
  turn: Turn,
  generation: number,
): Comparison {
  const { stored, rebuilt } = rebuild;
  const proved = rebuilt.snapshot().data;
  const { findings, holds, ended, counts } = judgeHolds(rebuild, words.item, turn.nowMs);
  const judge = new LeakJudge(rebuild, words.item, turn);
  for (const { item, bit } of leftovers(rebuild, proved)) judge.judge(item, bit);

  const snapshot = rebuilt.snapshot();
  const given = stored?.range === snapshot.range ? unseenOf(stored, snapshot.data, proved) : [];
  const next: StoredRange = {
    ...snapshot,
    allocator: 'table',
    generation,
    strikes: judge.strikes,
    holds,
    ...(given.length > 0 && { given }),
  };
  return {
    findings: [...findings, ...judge.findings, ...nothingFree(words, rebuilt)],
    next,
    changed: stored === undefined || !sameRange(stored, next),
    proved,
    freed: judge.freed,
    ended,
    bitOf: (text) => bitOf(rebuilt, text),
    counts: { allocated: rebuilt.used, free: rebuilt.free, capacity: rebuilt.max, ...judge.counts, ...counts },
  };
}

/** A finding of its own: the next Service that wants an item will be refused. */
export function nothingFree(
  words: RangeWords,
  range: { readonly spec: string; readonly free: number; readonly max: number },
): Finding[] {
  if (range.free > 0) return [];
  const message = `nothing is left free in the ${words.range} ${range.spec}, which has room for ${range.max}; widen it in the cluster spec in order to create new services`;
  return [{ type: 'nothingFree', message }];
}

/** What admission gave, of what is taken still and no Service was seen with. */
export function unseenOf({ given = [] }: StoredRange, data: Uint8Array, proved: Uint8Array): readonly Given[] {
  return keepGiven(given, (bit) => hasBit(data, bit) && !hasBit(proved, bit));
}

/** Whether two stored ranges say the same, however their bits are padded. */
export function sameRange(one: StoredRange, other: StoredRange): boolean {
  return (
    one.range === other.range &&
    one.allocator === other.allocator &&
    one.generation === other.generation &&
    equalBits(one.data, other.data) &&
    equalBits(one.strikes.once, other.strikes.once) &&
    equalBits(one.strikes.twice, other.strikes.twice) &&
    sameTurn(one.strikes.last, other.strikes.last) &&
    sameHolds(one.holds, other.holds) &&
    sameGiven(one.given, other.given)
  );
}

/** Whether the same pass struck last. */
export function sameTurn(one: StoredRange['strikes']['last'], other: StoredRange['strikes']['last']): boolean {
  return one?.passId === other?.passId && one?.atMs === other?.atMs;
}

/** Recorded items that no Service claims and nobody holds, ascending, with their bits in what is recorded. */
function* leftovers<Item>(
  { recorded, rebuilt, held }: Rebuild<Item>,
  proved: Uint8Array,
): Generator<{ readonly item: Item; readonly bit: number }> {
  const { data } = recorded.snapshot();
  const isSameRange = recorded.spec === rebuilt.spec;
  const unclaimed = isSameRange ? subtract(data, proved) : data;
  for (const bit of bitsOf(subtract(unclaimed, fromBits(held.bitsIn(recorded))))) {
    const item = recorded.itemAt(bit);
    if (isSameRange || !rebuilt.has(item)) yield { item, bit };
  }
}
