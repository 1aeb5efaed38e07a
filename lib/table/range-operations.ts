import { AllocatorError } from '../allocator/errors.ts';
import { type Hold, type HoldTerms, holdOn, isOver, mayClaim, sameTerms } from '../cluster/hold.ts';
import type { RangeDraft } from './range-draft.ts';
import { MOST_HOLD_BYTES, sizeOfHolds } from './ranges.ts';

/** What is requested of a range: this value, or the next free one. */
export type Requested<Item> = { readonly value: Item } | 'next';

export interface AllocateOptions {
  /** Holds what is allocated, in the same write. */
  readonly hold?: HoldTerms;
  /**
   * What the request of `hold` holds already counts as allocated, so that a retry only completes what was begun. A
   * request that always names the same items never has more than those, however often it is retried.
   */
  readonly isRetry?: boolean;
  /** For a Service: a value whose hold it may claim is allocated as well, and the hold ends. */
  readonly claim?: Claim;
}

/** The claim of a Service to held items. It cannot claim a hold that is over: another Service may have claimed it, and only a pass sees that. */
export interface Claim {
  /** The label of the Service, if it has one. */
  readonly holdOwner?: string;
  readonly nowMs: number;
  /** Only holds that are still exactly these. Default: any. */
  readonly expected?: readonly Hold[];
}

export interface ReleaseOptions {
  /** Only what this request still holds: the rest has other owners by now. */
  readonly requestId?: string;
  /** What was held like this is not freed, but held so again. */
  readonly restore?: readonly Hold[];
  /** Only what this owner holds. */
  readonly owner?: string;
  /** Only what is held as it is here; what is not in here only if it is not held. */
  readonly expected?: readonly Hold[];
  /** Called right before each write. @throws TableError when the caller's time is over. */
  readonly checkTime?: () => void;
}

/** Both in canonical form, without what was free before. */
export interface Released<Item> {
  readonly released: readonly Item[];
  /** Not released: it is not held as the caller expects. */
  readonly kept: readonly Item[];
}

/** Nothing was changed. */
export interface Refused {
  readonly outcome: 'refused';
  /** Place in the request; absent when the refusal is about no single item. */
  readonly index?: number;
  readonly error: AllocatorError;
}

/** `items` are canonical and in the order of the request. */
export type Allocated<Item> = { readonly outcome: 'allocated'; readonly items: readonly Item[] } | Refused;

/** Allocates every item or none. After a refusal the draft is half changed and must not be stored. */
export function allocateAll<Item>(
  draft: RangeDraft<Item>,
  requested: readonly Requested<Item>[],
  { hold, isRetry, claim }: AllocateOptions,
): Allocated<Item> {
  const own = new Set(isRetry && hold?.requestId !== undefined ? itemsHeldBy(draft, hold.requestId) : []);
  const items: Item[] = [];
  const allocated = new Set<Item>();
  for (const index of valuesFirst(requested)) {
    const each = requested[index] ?? 'next';
    const before = ownItem(draft, own, each);
    if (before !== undefined) {
      items[index] = before;
      continue;
    }
    const now = each === 'next' ? draft.allocateNext() : allocateValue(draft, each.value, claim);
    if (now instanceof AllocatorError) return { outcome: 'refused', index, error: now };
    items[index] = now.item;
    allocated.add(now.item);
  }
  if (allocated.size === 0 || hold === undefined) return { outcome: 'allocated', items };
  const inOrder = items.filter((item) => allocated.has(item));
  draft.hold(inOrder, hold);
  return tooManyHolds(draft) ?? { outcome: 'allocated', items };
}

/** Releases items with their holds. @throws what `checkTime` throws. */
export function releaseAll<Item>(
  draft: RangeDraft<Item>,
  items: readonly Item[],
  options: ReleaseOptions,
): Released<Item> {
  options.checkTime?.();
  const released: Item[] = [];
  const kept: Item[] = [];
  for (const item of items) {
    if (!draft.has(item)) continue;
    const text = draft.textOf(item);
    const before = holdOn(options.restore ?? [], text);
    if (!mayRelease(draft.holdOn(item), text, options)) kept.push(item);
    else if (before === undefined) released.push(draft.release(item).item);
    else draft.hold([item], before);
  }
  return { released, kept };
}

function mayRelease(hold: Hold | undefined, text: string, { requestId, owner, expected }: ReleaseOptions): boolean {
  if (requestId !== undefined && hold?.requestId !== requestId) return false;
  if (owner !== undefined && hold?.owner !== owner) return false;
  const before = expected === undefined ? hold : holdOn(expected, text);
  return before === undefined || hold === undefined ? before === hold : sameTerms(hold, before);
}

export function itemsHeldBy<Item>(draft: RangeDraft<Item>, requestId: string): readonly Item[] {
  return draft.holds
    .filter((hold) => hold.requestId === requestId)
    .flatMap(({ items }) => items.flatMap((text) => draft.itemOf(text) ?? []));
}

function valuesFirst<Item>(requested: readonly Requested<Item>[]): readonly number[] {
  const isNext = (index: number) => Number(requested[index] === 'next');
  return [...requested.keys()].sort((one, other) => isNext(one) - isNext(other));
}

/** Removes the requested item from `own`, if it is there. Values come first, so that what is left of them is for `next`. */
function ownItem<Item>(draft: RangeDraft<Item>, own: Set<Item>, each: Requested<Item>): Item | undefined {
  const [first] = own;
  const item = each === 'next' ? first : draft.itemOf(String(each.value));
  return item !== undefined && own.delete(item) ? item : undefined;
}

function allocateValue<Item>(
  draft: RangeDraft<Item>,
  value: Item,
  claim: Claim | undefined,
): { readonly item: Item } | AllocatorError {
  const hold = claim && draft.holdOn(value);
  if (claim === undefined || hold === undefined) return draft.allocate(value);
  const { holdOwner, nowMs } = claim;
  const expected = claim.expected === undefined ? hold : holdOn(claim.expected, draft.textOf(value));
  const isExpected = expected !== undefined && sameTerms(hold, expected);
  return isExpected && !isOver(hold, nowMs) && mayClaim(hold, holdOwner) ? draft.claim(value) : draft.allocate(value);
}

function tooManyHolds(draft: RangeDraft<unknown>): Refused | undefined {
  const bytes = sizeOfHolds(draft.holds);
  if (bytes <= MOST_HOLD_BYTES) return undefined;
  const error = new AllocatorError(
    'HoldsFull',
    `the holds of this range would take ${bytes} bytes and have room for ${MOST_HOLD_BYTES}: release some, let some end, or hold fewer items`,
  );
  return { outcome: 'refused', error };
}
