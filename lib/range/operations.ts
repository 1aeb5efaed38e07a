import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { type Hold, type HoldTerms, holdOn, isOver, mayClaim, sameTerms } from './hold.ts';
import type { Range, Taken } from './range.ts';

/** A requested item. `undefined` requests any free item. */
export type Requested = string | undefined;

export interface AllocateOptions {
  /** If set, the items are also held. Items that this request already holds count as allocated, so a retry never gets more. */
  readonly hold?: HoldTerms;
  /** Set if a Service requests the items. If the Service may claim a held item, the item is allocated and its hold ends. */
  readonly claim?: HoldClaim;
}

/** The claim of a Service to held items. It does not apply to an expired hold: another Service may already have the item. */
export interface HoldClaim {
  readonly holdOwner?: string | undefined;
  /** Returns the current time. Called at each attempt to write the range, because a hold may end between two attempts. */
  readonly nowMs: () => number;
  /** If set, only holds that equal a hold in this list are claimed. */
  readonly expected?: readonly Hold[];
}

export interface ReleaseOptions {
  /** If set, only items that this request still holds are released. Other items may already have other owners. */
  readonly requestId?: string;
  /** Holds to restore: their items are not freed. */
  readonly restore?: readonly Hold[];
  readonly owner?: string;
  /** If set, an item is released only if its hold, or the absence of a hold, is the same as in this list. */
  readonly expected?: readonly Hold[];
  /** Called right before each write. Throws a TableError if the caller's deadline has passed. */
  readonly checkTime?: () => void;
}

/** The result of a release: what happened to each item, in the order of the request. Items in the range are in canonical form. */
export type Released = readonly {
  readonly item: string;
  /** `kept`: the item stays allocated, because the caller may not release it, or because `restore` contains its hold. */
  readonly outcome: 'released' | 'free' | 'kept' | 'notInRange';
  /** The reason why the item stays allocated, if its hold is not the reason. */
  readonly refusal?: Refusal;
}[];

/** The result of an allocation. `items` are in canonical form, in the order of the request. */
export type Allocated = { readonly outcome: 'allocated'; readonly items: readonly string[] } | Refusal;

/** The result of an operation, and the range after it. If nothing changed, `range` is the same object as before. */
export interface Changed<Result> {
  readonly result: Result;
  readonly range: Range;
}

export function allocateAll(
  range: Range,
  requested: readonly Requested[],
  { hold, claim }: AllocateOptions,
): Changed<Allocated> {
  const own = new Set(hold?.requestId !== undefined ? range.heldBy(hold.requestId) : []);
  const items: string[] = [];
  const fresh = new Set<string>();
  let next = range;
  for (const index of valuesFirst(requested)) {
    const value = requested[index];
    const before = ownItem(range, own, value);
    if (before !== undefined) {
      items[index] = before;
      continue;
    }
    const taken = value === undefined ? next.takeNext() : takeValue(next, value, claim);
    if (isRefused(taken)) {
      const refusal = claim === undefined ? withFree(taken, range.taken.free, requested.length) : taken;
      return { result: { ...refusal, index }, range };
    }
    next = taken.range;
    items[index] = taken.item;
    fresh.add(taken.item);
  }
  const toHold = items.filter((item) => fresh.has(item));
  const held = hold === undefined || toHold.length === 0 ? next : next.hold(toHold, hold);
  return { result: { outcome: 'allocated', items }, range: held };
}

/** Adds the numbers of free and requested items to the refusal for a full range. For one item, keeps upstream's message. */
export function withFree(refusal: Refusal, free: number, requested: number): Refusal {
  if (refusal.code !== 'Full' || requested === 1) return refusal;
  return refused('Full', `${refusal.message}: ${free} free, ${requested} requested`);
}

export function releaseAll(range: Range, items: readonly string[], options: ReleaseOptions): Changed<Released> {
  let next = range;
  const releaseOne = (item: string): Released[number]['outcome'] => {
    if (next.taken.refusalIfOutside(item) !== undefined) return 'notInRange';
    if (!next.taken.has(item)) return 'free';
    if (!mayRelease(next.holdOn(item), next.canonical(item), options)) return 'kept';
    const before = holdOn(options.restore ?? [], next.canonical(item));
    next = before === undefined ? next.release(item) : next.hold([item], before);
    return before === undefined ? 'released' : 'kept';
  };
  const result = items.map((item) => ({ item: range.canonical(item), outcome: releaseOne(item) }));
  return { result, range: next };
}

/** Returns whether the item may be released: its hold, or the absence of a hold, is as the caller expects. */
export function mayRelease(
  hold: Hold | undefined,
  item: string,
  { requestId, owner, expected }: ReleaseOptions,
): boolean {
  if (requestId !== undefined && hold?.requestId !== requestId) return false;
  if (owner !== undefined && hold?.owner !== owner) return false;
  const before = expected === undefined ? hold : holdOn(expected, item);
  return before === undefined || hold === undefined ? before === hold : sameTerms(hold, before);
}

/** Returns the indexes of the requests: first the requests for a value, so that no other request takes this value. */
export function valuesFirst(requested: readonly Requested[]): readonly number[] {
  const isNext = (index: number) => Number(requested[index] === undefined);
  return [...requested.keys()].sort((one, other) => isNext(one) - isNext(other));
}

/** Returns an item that the request already holds, and removes it from `own`. If `value` is absent, takes any item of `own`. */
function ownItem(range: Range, own: Set<string>, value: Requested): string | undefined {
  const [first] = own;
  const item = value === undefined ? first : range.canonical(value);
  return item !== undefined && own.delete(item) ? item : undefined;
}

function takeValue(range: Range, value: string, claim: HoldClaim | undefined): Taken | Refusal {
  if (claim === undefined) return range.take(value);
  const { holdOwner, nowMs } = claim;
  const hold = range.holdOn(value);
  const expected = claim.expected === undefined ? hold : holdOn(claim.expected, range.canonical(value));
  // An item that lost its expected hold is refused: a rollback would restore the hold, which its owner may have released.
  if (hold === undefined) return expected === undefined ? range.take(value) : notHeld(range.canonical(value));
  const isExpected = expected !== undefined && sameTerms(hold, expected);
  return isExpected && !isOver(hold, nowMs()) && mayClaim(hold, holdOwner) ? range.claim(value) : range.take(value);
}

/** Returns the refusal of an item whose hold changed after a request began. `owner` is the owner that the request expects. */
export function notHeld(item: string, owner?: string): Refusal {
  const expected = owner === undefined ? 'as it was when this request began' : `by ${owner} as when this request began`;
  return refused('NotHeld', `${item} is not held ${expected}: look it up`);
}
