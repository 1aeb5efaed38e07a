import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits, hasBit } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { type LeakStrikes, NO_STRIKES } from '../range/stored-range.ts';

/** The strike that frees an item (upstream's `numRepairsBeforeLeakCleanup`). */
const LAST_STRIKE = 3;

/** The pass that decides about leaks. It adds at most one strike to an item, and only long enough after the previous strike. */
export interface JudgingPass {
  readonly passId: string;
  readonly nowMs: number;
  readonly intervalMs: number;
  /** The control plane whose Services the pass lists. */
  readonly controlPlane: string;
  /** False if the pass could not confirm this control plane. */
  readonly mayFree: boolean;
  /** True if strikes restart at zero, because a pass in `observe` ran after the strikes were counted. */
  readonly fromZero: boolean;
}

export interface Leftover {
  readonly item: string;
  readonly recordedBit: number;
}

/**
 * Decides about recorded items that no Service claims: the third strike frees an item. Strikes of another control plane do not
 * count. Items outside the range of the spec are dropped. Bit numbers in the result are positions in this range.
 */
export function judgeLeaks(
  leftovers: Iterable<Leftover>,
  range: Pick<RangeAllocator, 'indexOf' | 'allocate'>,
  noun: string,
  stored: LeakStrikes,
  pass: JudgingPass,
) {
  const before = countedStrikes(stored, pass);
  const last = lastStrike(stored, pass);
  const counts = mayStrike(last, pass);
  const most = pass.mayFree ? LAST_STRIKE : LAST_STRIKE - 1;
  const findings: Finding[] = [];
  const [unstruck, once, twice, freed]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (const { item, recordedBit } of leftovers) {
    const bit = range.indexOf(item);
    const strikesBefore = bit === undefined ? 0 : strikesOn(before, recordedBit);
    const strikes = counts ? Math.min(strikesBefore + 1, most) : strikesBefore;
    if (bit !== undefined) [unstruck, once, twice, freed][strikes]?.push(bit);
    const refusal = bit === undefined ? range.allocate(item)?.message : undefined;
    findings.push(...leakFindings(item, noun, { isNew: strikesBefore === 0 && strikes === 1, strikes, refusal }));
  }
  const isAnyStruck = counts && once.length + twice.length + freed.length > 0;
  const lastNow = isAnyStruck ? { atMs: pass.nowMs, passId: pass.passId, controlPlane: pass.controlPlane } : last;
  return {
    findings,
    kept: fromBits([...unstruck, ...once, ...twice]),
    freed: fromBits(freed),
    strikes: { once: fromBits(once), twice: fromBits(twice), ...(lastNow && { last: lastNow }) },
    // `mayHaveLeaked`: the items that stay taken and have one or two strikes.
    counts: { leaks: freed.length, mayHaveLeaked: once.length + twice.length },
  };
}

function countedStrikes(stored: LeakStrikes, { fromZero, controlPlane }: JudgingPass): LeakStrikes {
  const { controlPlane: listed = controlPlane } = stored.last ?? {};
  return fromZero || listed !== controlPlane ? NO_STRIKES : stored;
}

function leakFindings(
  item: string,
  noun: string,
  { isNew, strikes, refusal }: { isNew: boolean; strikes: number; refusal: string | undefined },
): Finding[] {
  const findings: Finding[] = [];
  const find = (type: 'leak' | 'mayHaveLeaked', what: string) => {
    findings.push({ type, message: `the ${noun} ${item} ${what}`, item });
  };
  if (isNew) find('mayHaveLeaked', 'may have leaked: flagging for later clean up');
  if (strikes === LAST_STRIKE) find('leak', 'appears to have leaked: cleaning up');
  if (refusal !== undefined) find('mayHaveLeaked', `may have leaked, but can not be allocated: ${refusal}`);
  return findings;
}

/** Returns the last strike. Replaces a time far in the future (a wrong clock), because no pass could add a strike until then. */
function lastStrike({ last }: LeakStrikes, { passId, nowMs, intervalMs }: JudgingPass): LeakStrikes['last'] {
  return last !== undefined && last.atMs - nowMs > intervalMs ? { ...last, atMs: nowMs, passId } : last;
}

/** Returns whether the pass may add strikes. A repeated pass or an early pass may not. */
function mayStrike(last: LeakStrikes['last'], { passId, nowMs, intervalMs }: JudgingPass): boolean {
  return last === undefined || (last.passId !== passId && nowMs - last.atMs >= (intervalMs * 2) / 3);
}

function strikesOn({ once, twice }: LeakStrikes, bit: number): number {
  if (hasBit(twice, bit)) return 2;
  return hasBit(once, bit) ? 1 : 0;
}
