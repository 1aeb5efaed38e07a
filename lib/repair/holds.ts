import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { type Hold, holdsByItem, isSurelyOver, mayClaim, withoutHolds } from '../range/hold.ts';
import type { EndedHold } from '../range/merge.ts';
import type { JudgingPass } from './leaks.ts';

interface HeldItem<Item> {
  /** The text of the item in the hold. */
  readonly text: string;
  readonly hold: Hold;
  /** Its number in the range of the spec; undefined if it is outside. */
  readonly bit: number | undefined;
  /** Returns its number in another range. */
  readonly bitIn: (range: RangeAllocator<Item>) => number | undefined;
}

export class HeldItems<Item> {
  readonly items: readonly HeldItem<Item>[];
  readonly #range: RangeAllocator<Item>;
  readonly #bits: ReadonlySet<number>;
  readonly #claims = new Map<number, ServiceClaim>();

  /** `range` is that of the spec. */
  constructor(holds: readonly Hold[], range: RangeAllocator<Item>) {
    this.#range = range;
    this.items = [...holdsByItem(holds)].map(([text, hold]) => {
      const bitIn = (other: RangeAllocator<Item>) => bitOf(other, text);
      return { text, hold, bit: bitIn(range), bitIn };
    });
    this.#bits = new Set(this.items.flatMap(({ bit }) => bit ?? []));
  }

  /** Remembers the first good claim on a held item. */
  claimed(item: Item, by: ServiceClaim): void {
    const bit = this.#range.indexOf(item);
    if (bit !== undefined && this.#bits.has(bit)) this.#claims.set(bit, by);
  }

  claimOn({ bit }: HeldItem<Item>): ServiceClaim | undefined {
    return bit === undefined ? undefined : this.#claims.get(bit);
  }
}

export interface HoldJudgement {
  readonly findings: readonly Finding[];
  readonly holds: readonly Hold[];
  readonly kept: Uint8Array;
  readonly ended: readonly EndedHold[];
  readonly counts: {
    /** The number of items under a hold that continues. */
    readonly held: number;
    /** The number of items that are freed because their hold expired. */
    readonly holdsEnded: number;
  };
}

interface HoldJudgementOptions extends Pick<JudgingPass, 'mayFree'> {
  /** The name of an item: `cluster IP`. */
  readonly noun: string;
  readonly range: string;
  /** The start of the pass, before it read the range. */
  readonly nowMs: number;
}

/**
 * Decides about the holds of a range after every claim was entered. An item is freed at once if its hold had expired,
 * by every clock, before the range was read: a Service that was to claim it exists by then.
 */
export function judgeHolds<Item>(
  held: HeldItems<Item>,
  stored: readonly Hold[],
  { noun, range, nowMs, mayFree }: HoldJudgementOptions,
): HoldJudgement {
  const findings: Finding[] = [];
  const ended: EndedHold[] = [];
  const kept: number[] = [];
  for (const each of held.items) {
    const { text, hold, bit } = each;
    const claimedBy = held.claimOn(each);
    const isEnding = isSurelyOver(hold, nowMs) || (claimedBy !== undefined && mayClaim(hold, claimedBy.holdOwner));
    if (mayFree && isEnding) {
      ended.push({ item: text, hold, freedBit: claimedBy === undefined ? bit : undefined });
    } else if (bit === undefined) {
      ended.push({ item: text, hold, freedBit: undefined });
      findings.push(outOfRange(`the ${noun} ${text}`, each, range));
    } else {
      kept.push(bit);
      if (claimedBy !== undefined) findings.push(heldByAnother(`the ${noun} ${text}`, each, claimedBy));
    }
  }
  return {
    findings,
    holds: withoutHolds(
      stored,
      ended.map(({ item }) => item),
    ),
    kept: fromBits(kept),
    ended,
    counts: { held: kept.length, holdsEnded: ended.filter(({ freedBit }) => freedBit !== undefined).length },
  };
}

/** Returns the number of the item that a text names; undefined when it is not in the range. */
export function bitOf<Item>(range: RangeAllocator<Item>, text: string): number | undefined {
  const item = range.itemOf(text);
  return item === undefined ? undefined : range.indexOf(item);
}

function heldByAnother<Item>(what: string, { text, hold }: HeldItem<Item>, { namespace, name }: ServiceClaim): Finding {
  const service = `${namespace}/${name}`;
  const label = `${HOLD_OWNER_LABEL}: ${hold.owner}`;
  return {
    type: 'heldByAnother',
    message: `${what} for service ${service} is held by ${hold.owner}, and the Service does not have its label. Label it "${label}", and the next pass ends the hold; or recreate the Service`,
    item: text,
    service,
  };
}

function outOfRange<Item>(what: string, { text, hold }: HeldItem<Item>, range: string): Finding {
  return {
    type: 'other',
    message: `${what} is held by ${hold.owner} and is not in ${range}, the range that the cluster spec has now: its hold ends`,
    item: text,
  };
}
