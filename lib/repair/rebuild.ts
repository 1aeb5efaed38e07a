import { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import { HeldItems } from './held-items.ts';
import type { ClaimResult, Ledger, MakeRange } from './ledger.ts';

/** One range, filled from what Services claim, beside what was recorded of it before they were listed. */
export interface Rebuild<Item> extends Ledger<Item> {
  /** What was read; undefined when no pass had saved the range, or whoever allocated then was not this table. */
  readonly stored: StoredRange | undefined;
  /** What `stored` says is taken, numbered by the range that it was saved for. */
  readonly recorded: RangeAllocator<Item>;
  /** What the claims prove, in the range that the spec asks for. */
  readonly rebuilt: RangeAllocator<Item>;
  /** What `stored` holds, with the claims on it. */
  readonly held: HeldItems<Item>;
}

/**
 * The allocator that `stored` describes, of its own range; an empty one of `configured` when nothing is stored.
 * An `AllocatorError` says why `stored` is corrupt.
 */
export function recordedRange<Item>(
  makeRange: MakeRange<Item>,
  configured: string,
  stored: StoredRange | undefined,
): RangeAllocator<Item> | AllocatorError {
  const range = makeRange(stored?.range || configured);
  if (range instanceof AllocatorError || stored === undefined) return range;
  return range.restore({ range: range.spec, data: stored.data }) ?? range;
}

/** `rebuilt` is empty and is filled by the claims. */
export function startRebuild<Item>(
  stored: StoredRange | undefined,
  recorded: RangeAllocator<Item>,
  rebuilt: RangeAllocator<Item>,
): Rebuild<Item> {
  const held = new HeldItems(stored?.holds ?? [], rebuilt);
  const enter = (item: Item): ClaimResult =>
    rebuilt.allocate(item) ?? (recorded.has(item) ? 'recorded' : 'notRecorded');
  const enterHeld = (item: Item, by: ServiceClaim): ClaimResult => {
    const result = enter(item);
    if (!(result instanceof AllocatorError)) held.claimed(item, by);
    return result;
  };
  return { spec: rebuilt.spec, stored, recorded, rebuilt, held, claim: held.isEmpty ? enter : enterHeld };
}
