import { AllocatorError } from '../allocator/errors.ts';
import { type Hold, type HoldTerms, holdOn, isOver, mayClaim, sameTerms } from './hold.ts';
import type { Range, Taken } from './range.ts';

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
  readonly claim?: HoldClaim;
}

/** The claim of a Service to held items. It cannot claim a hold that is over: another Service may have claimed it, and only a pass sees that. */
export interface HoldClaim {
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

/** What an operation returns to its caller, and the range after it: the same one if nothing changed. */
export interface Changed<Item, Result> {
  readonly result: Result;
  readonly range: Range<Item>;
}

/** Allocates every item or none. */
export function allocateAll<Item>(
  range: Range<Item>,
  requested: readonly Requested<Item>[],
  { hold, isRetry, claim }: AllocateOptions,
): Changed<Item, Allocated<Item>> {
  const own = new Set(isRetry && hold?.requestId !== undefined ? range.heldBy(hold.requestId) : []);
  const items: Item[] = [];
  const fresh = new Set<Item>();
  let next = range;
  for (const index of valuesFirst(requested)) {
    const each = requested[index] ?? 'next';
    const before = ownItem(range, own, each);
    if (before !== undefined) {
      items[index] = before;
      continue;
    }
    const taken = each === 'next' ? next.takeNext() : takeValue(next, each.value, claim);
    if (taken instanceof AllocatorError) {
      const error = claim === undefined ? withFree(taken, range.free, requested.length) : taken;
      return { result: { outcome: 'refused', index, error }, range };
    }
    next = taken.range;
    items[index] = taken.item;
    fresh.add(taken.item);
  }
  const toHold = items.filter((item) => fresh.has(item));
  const held = hold === undefined || toHold.length === 0 ? next : next.hold(toHold, hold);
  return { result: { outcome: 'allocated', items }, range: held };
}

/** Adds how many are free to the refusal of several. An API server has the original's words alone. */
function withFree(refusal: AllocatorError, free: number, requested: number): AllocatorError {
  if (refusal.code !== 'Full' || requested === 1) return refusal;
  return new AllocatorError('Full', `${refusal.message}: ${free} free, ${requested} requested`);
}

/** Releases items with their holds. */
export function releaseAll<Item>(
  range: Range<Item>,
  items: readonly Item[],
  options: ReleaseOptions,
): Changed<Item, Released<Item>> {
  const released: Item[] = [];
  const kept: Item[] = [];
  let next = range;
  for (const item of items) {
    if (!next.has(item)) continue;
    const text = next.textOf(item);
    const before = holdOn(options.restore ?? [], text);
    if (!mayRelease(next.holdOn(item), text, options)) kept.push(item);
    else if (before !== undefined) next = next.hold([item], before);
    else {
      released.push(next.canonical(item));
      next = next.release(item);
    }
  }
  return { result: { released, kept }, range: next };
}

function mayRelease(hold: Hold | undefined, text: string, { requestId, owner, expected }: ReleaseOptions): boolean {
  if (requestId !== undefined && hold?.requestId !== requestId) return false;
  if (owner !== undefined && hold?.owner !== owner) return false;
  const before = expected === undefined ? hold : holdOn(expected, text);
  return before === undefined || hold === undefined ? before === hold : sameTerms(hold, before);
}

function valuesFirst<Item>(requested: readonly Requested<Item>[]): readonly number[] {
  const isNext = (index: number) => Number(requested[index] === 'next');
  return [...requested.keys()].sort((one, other) => isNext(one) - isNext(other));
}

/** Removes the requested item from `own`, if it is there. Values come first, so that what is left of them is for `next`. */
function ownItem<Item>(range: Range<Item>, own: Set<Item>, each: Requested<Item>): Item | undefined {
  const [first] = own;
  const item = each === 'next' ? first : range.itemOf(String(each.value));
  return item !== undefined && own.delete(item) ? item : undefined;
}

function takeValue<Item>(range: Range<Item>, value: Item, claim: HoldClaim | undefined): Taken<Item> | AllocatorError {
  const hold = claim && range.holdOn(value);
  if (claim === undefined || hold === undefined) return range.take(value);
  const { holdOwner, nowMs } = claim;
  const expected = claim.expected === undefined ? hold : holdOn(claim.expected, range.textOf(value));
  const isExpected = expected !== undefined && sameTerms(hold, expected);
  return isExpected && !isOver(hold, nowMs) && mayClaim(hold, holdOwner) ? range.claim(value) : range.take(value);
}
