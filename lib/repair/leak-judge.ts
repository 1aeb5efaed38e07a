import { fromBits, hasBit } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { type LeakStrikes, NO_STRIKES } from '../cluster/stored-range.ts';
import type { Rebuild } from './rebuild.ts';
import { mayStrike, strikesAt, type Turn } from './strikes.ts';

/** The strike that frees an item (`numRepairsBeforeLeakCleanup` of the original). */
const LAST_STRIKE = 3;

/**
 * Judges, one after another, items that are recorded and that no Service claims. What stays taken is entered into the
 * rebuilt range; strikes and freed items are numbered by that.
 */
export class LeakJudge<Item> {
  readonly findings: Finding[] = [];
  readonly #rebuild: Rebuild<Item>;
  readonly #noun: string;
  readonly #turn: Turn;
  readonly #before: LeakStrikes;
  readonly #counts: boolean;
  readonly #once: number[] = [];
  readonly #twice: number[] = [];
  readonly #freed: number[] = [];
  #struck = false;

  /** `noun` names an item: `cluster IP`. */
  constructor(rebuild: Rebuild<Item>, noun: string, turn: Turn) {
    this.#rebuild = rebuild;
    this.#noun = noun;
    this.#turn = turn;
    this.#before = strikesAt(turn, rebuild.stored?.strikes ?? NO_STRIKES);
    this.#counts = mayStrike(this.#before, turn);
  }

  get freed(): Uint8Array {
    return fromBits(this.#freed);
  }

  get counts(): { readonly leaks: number; readonly mayHaveLeaked: number } {
    return { leaks: this.#freed.length, mayHaveLeaked: this.#once.length + this.#twice.length };
  }

  get strikes(): LeakStrikes {
    const { passId, nowMs } = this.#turn;
    const last = this.#struck ? { atMs: nowMs, passId } : this.#before.last;
    return { once: fromBits(this.#once), twice: fromBits(this.#twice), ...(last && { last }) };
  }

  /** `bit` is the item's number in what is recorded. */
  judge(item: Item, bit: number): void {
    const index = this.#rebuild.rebuilt.indexOf(item);
    const before = index === undefined ? 0 : this.#strikesOf(bit);
    const strikes = this.#counts ? before + 1 : before;
    if (index !== undefined && strikes === LAST_STRIKE) {
      this.#freed.push(index);
      this.#report('leak', item, 'appears to have leaked: cleaning up');
    } else {
      if (before === 0 && strikes === 1) {
        this.#report('mayHaveLeaked', item, 'may have leaked: flagging for later clean up');
      }
      this.#keep(item, index, strikes);
    }
    this.#struck ||= this.#counts && index !== undefined;
  }

  #keep(item: Item, index: number | undefined, strikes: number): void {
    const refused = this.#rebuild.rebuilt.allocate(item);
    if (refused !== undefined) {
      this.#report('mayHaveLeaked', item, `may have leaked, but can not be allocated: ${refused.message}`);
    } else if (index !== undefined) {
      if (strikes === 1) this.#once.push(index);
      if (strikes === 2) this.#twice.push(index);
    }
  }

  #strikesOf(bit: number): number {
    if (hasBit(this.#before.twice, bit)) return 2;
    return hasBit(this.#before.once, bit) ? 1 : 0;
  }

  #report(type: 'leak' | 'mayHaveLeaked', item: Item, what: string): void {
    this.findings.push({ type, message: `the ${this.#noun} ${item} ${what}`, item: String(item) });
  }
}
