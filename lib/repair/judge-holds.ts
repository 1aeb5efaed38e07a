import type { Finding } from '../cluster/finding.ts';
import { HOLD_OWNER_LABEL, type Hold, isSurelyOver, mayTakeUp, withoutHolds } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { HeldItem } from './held-items.ts';
import type { Rebuild } from './rebuild.ts';
import { nameOfService } from './service-finding.ts';

/** A hold that a pass ends on one item. */
export interface EndedHold {
  /** As the hold names it. */
  readonly item: string;
  /** As the pass read it. */
  readonly hold: Hold;
  /** The item is freed: its bit in the range that the spec asks for. Undefined when it is not. */
  readonly freedBit: number | undefined;
}

export interface JudgedHolds {
  readonly findings: readonly Finding[];
  /** What goes on. */
  readonly holds: readonly Hold[];
  readonly ended: readonly EndedHold[];
  readonly counts: {
    /** Items under a hold that goes on. */
    readonly held: number;
    /** Items that are freed because their hold is over. */
    readonly holdsEnded: number;
  };
}

/**
 * What becomes of the holds, after every claim was entered. What goes on being held is entered into the rebuilt range.
 * A hold that was over, by every clock, before the range was read is freed at once: a Service that was to take it up
 * exists by then.
 * @param noun names an item: `cluster IP`
 * @param nowMs when the pass began, before it read the range
 */
export function judgeHolds<Item>({ stored, rebuilt, held }: Rebuild<Item>, noun: string, nowMs: number): JudgedHolds {
  const findings: Finding[] = [];
  const ended: EndedHold[] = [];
  let kept = 0;
  for (const each of held) {
    const { text, hold, place } = each;
    const claimedBy = held.claimOn(each);
    if (endsNow(each, claimedBy, nowMs)) {
      ended.push({ item: text, hold, freedBit: claimedBy === undefined ? place?.bit : undefined });
    } else if (place === undefined) {
      ended.push({ item: text, hold, freedBit: undefined });
      findings.push(outOfRange(noun, each, rebuilt.spec));
    } else {
      kept++;
      if (claimedBy === undefined) rebuilt.allocate(place.item);
      else findings.push(heldByAnother(noun, each, claimedBy));
    }
  }
  return {
    findings,
    holds: withoutHolds(
      stored?.holds ?? [],
      ended.map(({ item }) => item),
    ),
    ended,
    counts: { held: kept, holdsEnded: ended.filter(({ freedBit }) => freedBit !== undefined).length },
  };
}

function endsNow<Item>({ hold }: HeldItem<Item>, claimedBy: ServiceClaim | undefined, nowMs: number): boolean {
  return isSurelyOver(hold, nowMs) || (claimedBy !== undefined && mayTakeUp(hold, claimedBy.holdOwner));
}

function heldByAnother<Item>(noun: string, { text, hold }: HeldItem<Item>, claimedBy: ServiceClaim): Finding {
  const service = nameOfService(claimedBy);
  const label = `${HOLD_OWNER_LABEL}: ${hold.owner}`;
  return {
    type: 'heldByAnother',
    message: `the ${noun} ${text} for service ${service} is held by ${hold.owner}, and this one has not its label; label it "${label}", whereupon the next pass ends the hold, or recreate it`,
    item: text,
    service,
  };
}

function outOfRange<Item>(noun: string, { text, hold }: HeldItem<Item>, range: string): Finding {
  return {
    type: 'other',
    message: `the ${noun} ${text} is held by ${hold.owner} and is not in ${range}, the range that the cluster spec has now: its hold ends`,
    item: text,
  };
}
