import type { RangeAllocator } from '../allocator/range-allocator.ts';
import { fromBits } from '../allocator/snapshot-bytes.ts';
import type { Finding } from '../cluster/finding.ts';
import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { type Hold, holdsByItem, isSurelyOver, mayClaim, withoutHolds } from '../range/hold.ts';
import type { EndedHold } from '../range/merge.ts';
import type { JudgingPass } from './leaks.ts';

export interface HoldJudgement {
  readonly findings: readonly Finding[];
  readonly holds: readonly Hold[];
  readonly kept: Uint8Array;
  readonly ended: readonly EndedHold[];
  readonly counts: {
    readonly held: number;
    /** The number of items that this pass frees because their hold expired. */
    readonly holdsEnded: number;
  };
}

/**
 * Decides about the holds of a range after all claims were entered. Frees an item immediately if its hold had surely
 * ended (`isSurelyOver`) before the range was read: a Service that claims the item would already exist.
 * @param holders a map from the bit of each item with a hold to the Service that has the item
 */
export function judgeHolds(
  stored: readonly Hold[],
  range: Pick<RangeAllocator, 'indexOf' | 'spec'>,
  holders: ReadonlyMap<number, ServiceClaim>,
  noun: string,
  { nowMs, mayFree }: Pick<JudgingPass, 'nowMs' | 'mayFree'>,
): HoldJudgement {
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
