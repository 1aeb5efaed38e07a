import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits, hasBit } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { type LeakStrikes, NO_STRIKES } from '../range/stored-range.ts';

/** The strike that frees an item (`numRepairsBeforeLeakCleanup` of the original). */
const LAST_STRIKE = 3;

/** The pass that judges: strikes fall once for each pass, and not faster than passes are due. */
export interface JudgingPass {
  readonly passId: string;
  readonly nowMs: number;
  readonly intervalMs: number;
  /** Identifies the one whose Services it lists. */
  readonly controlPlane: string;
  /** Whether what was listed proves enough to free anything. */
  readonly mayFree: boolean;
  /** Passes only observed since strikes were counted: they count from zero. */
  readonly fromZero: boolean;
}

export interface Leftover<Item> {
  readonly item: Item;
  readonly recordedBit: number;
}

/** The judgement on all leftovers of a range. Bits are numbered by the range that the spec has now. */
export interface LeakJudgement {
  readonly findings: readonly Finding[];
  readonly kept: Uint8Array;
  readonly freed: Uint8Array;
  readonly strikes: LeakStrikes;
  readonly counts: {
    readonly leaks: number;
    /** Items without a Service that it leaves taken, with a strike or two. */
    readonly mayHaveLeaked: number;
  };
}

/**
 * Judges items that are recorded and that no Service claims: each stays taken for two strikes, and the third frees it.
 * Strikes by the Services of another control plane do not count.
 * What is not in the range of the spec cannot stay.
 * @param noun names an item: `cluster IP`
 */
export function judgeLeaks<Item>(
  leftovers: Iterable<Leftover<Item>>,
  range: Pick<RangeAllocator<Item>, 'indexOf' | 'allocate'>,
  noun: string,
  stored: LeakStrikes,
  pass: JudgingPass,
): LeakJudgement {
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
    counts: { leaks: freed.length, mayHaveLeaked: once.length + twice.length },
  };
}

function countedStrikes(stored: LeakStrikes, { fromZero, controlPlane }: JudgingPass): LeakStrikes {
  const { controlPlane: listed = controlPlane } = stored.last ?? {};
  return fromZero || listed !== controlPlane ? NO_STRIKES : stored;
}

function leakFindings<Item>(
  item: Item,
  noun: string,
  { isNew, strikes, refusal }: { isNew: boolean; strikes: number; refusal: string | undefined },
): Finding[] {
  const findings: Finding[] = [];
  const find = (type: 'leak' | 'mayHaveLeaked', what: string) => {
    findings.push({ type, message: `the ${noun} ${item} ${what}`, item: String(item) });
  };
  if (isNew) find('mayHaveLeaked', 'may have leaked: flagging for later clean up');
  if (strikes === LAST_STRIKE) find('leak', 'appears to have leaked: cleaning up');
  if (refusal !== undefined) find('mayHaveLeaked', `may have leaked, but can not be allocated: ${refusal}`);
  return findings;
}

/** A date far ahead is of a clock that was wrong: it would stop all counting until then. */
function lastStrike({ last }: LeakStrikes, { passId, nowMs, intervalMs }: JudgingPass): LeakStrikes['last'] {
  return last !== undefined && last.atMs - nowMs > intervalMs ? { ...last, atMs: nowMs, passId } : last;
}

/** A pass that is run again, or early, must not bring an address nearer to being freed. */
function mayStrike(last: LeakStrikes['last'], { passId, nowMs, intervalMs }: JudgingPass): boolean {
  return last === undefined || (last.passId !== passId && nowMs - last.atMs >= (intervalMs * 2) / 3);
}

function strikesOn({ once, twice }: LeakStrikes, bit: number): number {
  if (hasBit(twice, bit)) return 2;
  return hasBit(once, bit) ? 1 : 0;
}
