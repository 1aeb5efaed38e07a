import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { defined } from '../util/values.ts';
import { allocateAll, type Changed, type HoldClaim, type Requested } from './operations.ts';
import type { Range } from './range.ts';
import { countUnclaimed, type ServiceName, type Unclaimed, unclaimedOf } from './stored-range.ts';

export interface ServiceAllocationOptions {
  readonly service: ServiceName;
  /**
   * True for the review of a creation. If a Service of this name exists already, it may have the items in `Unclaimed.first`, so
   * a request without a value gets one of these items only if the limit of unclaimed items is reached.
   */
  readonly isNew: boolean;
  /** The items that the Service has or requests by value. They are not used for its requests without a value. */
  readonly named: readonly string[];
  readonly claim: HoldClaim;
}

export type ServiceAllocation =
  | { readonly outcome: 'allocated'; readonly items: readonly string[]; readonly undo: Undo }
  | Refusal;

/** The allocation of one review, which can be undone until another review of the Service is answered. */
export interface Undo {
  readonly service: ServiceName;
  readonly reviews: number;
  readonly items: readonly string[];
}

/** A namespace may have this many unclaimed items even if fewer items remain free, so that the last items can be allocated. */
const LEAST_UNCLAIMED = 16;
/** The maximum size of the stored unclaimed items of a range (bytes): about 2,000 Services. One namespace can use half of it. */
const MOST_UNCLAIMED_BYTES = 64 * 1024;
/** The assumed size (bytes) of a bit number, and of the entry of a Service or namespace in addition to its name. */
const ENTRY_BYTES = 8;

/**
 * Allocates all items that a Service lacks, or no item. Items that earlier reviews allocated for the Service already
 * belong to it, even if no pass has seen the Service with these items.
 */
export function allocateForService(
  range: Range,
  requested: readonly Requested[],
  options: ServiceAllocationOptions,
): Changed<ServiceAllocation> {
  const { service, isNew, claim } = options;
  const before = unclaimedOf(range.unclaimed, service);
  const mayAllocate = limitFor(range, service);
  const items = ownItems(range, requested, options, mayAllocate);
  const missing = [...requested.keys()].filter((place) => items[place] === undefined);
  const wanted = missing.map((place) => requested[place]);
  const allocated = allocateAll(range, wanted, { claim });
  if (isRefused(allocated.result)) {
    const place = missing[allocated.result.index ?? -1];
    return { result: { ...allocated.result, ...defined({ index: place }) }, range };
  }
  const given = allocated.result.items;
  // An undo must not free an item that was held. The item stays allocated until a pass frees it.
  const wasFree = given.filter((item) => range.holdOn(item) === undefined);
  if (!mayAllocate(wasFree.length)) return { result: tooManyUnclaimed(service), range };
  for (const [place, item] of given.entries()) items[missing[place] ?? -1] = item;

  const fresh = bitsOf(range, given);
  const reviews = before.reviews + 1;
  const next =
    isNew && before.reviews > 0
      ? { ...before, reviews, later: [...before.later, ...fresh] }
      : { ...before, reviews, first: [...before.first, ...fresh] };
  const all = items.filter((item) => item !== undefined);
  const result = { outcome: 'allocated', items: all, undo: { service, reviews, items: wasFree } } as const;
  return { result, range: allocated.range.withUnclaimed(next, all) };
}

/** Releases the items of a review, unless another review of the Service was answered since. */
export function undoAllocation(range: Range, { service, reviews, items }: Undo): Changed<undefined> {
  const now = unclaimedOf(range.unclaimed, service);
  const own = new Set(now.reviews === reviews ? [...now.first, ...now.later] : []);
  const released = items.filter((item) => own.has(range.taken.indexOf(item) ?? -1));
  return { result: undefined, range: released.reduce((left, item) => left.release(item), range) };
}

/** Returns the requested items that earlier reviews have already allocated for this Service, by their index in the request. */
function ownItems(
  range: Range,
  requested: readonly Requested[],
  { service, isNew, named }: ServiceAllocationOptions,
  mayAllocate: (count: number) => boolean,
): (string | undefined)[] {
  const { first, later } = unclaimedOf(range.unclaimed, service);
  const isOwn = (bit: number) =>
    range.taken.has(range.taken.itemAt(bit)) && range.holdOn(range.taken.itemAt(bit)) === undefined;
  const own = new Set([...later, ...first].filter(isOwn));
  const isNamed = new Set(bitsOf(range, named));
  const spare = [...own].filter((bit) => !isNamed.has(bit));
  const spareLater = spare.filter((bit) => later.includes(bit));
  const lacking = requested.filter((value) => value === undefined).length - spareLater.length;
  // The items of `Unclaimed.first` are used last, because an existing Service of that name may have them.
  const left = isNew && (lacking <= 0 || mayAllocate(lacking)) ? spareLater : spare;
  return requested.map((value) => {
    const bit = value === undefined ? left.shift() : range.taken.indexOf(value);
    // If the same item is requested twice, the range refuses the second request.
    return bit !== undefined && own.delete(bit) ? range.taken.itemAt(bit) : undefined;
  });
}

/**
 * Returns a function that checks whether a namespace may have `count` more unclaimed items. A namespace may have at most as many
 * unclaimed items as remain free, and its items may take at most as many bytes of the record as remain unused. If a Service is
 * refused after its allocation, for example by a quota, its items stay unclaimed until they are freed as leaks.
 */
function limitFor({ unclaimed, taken: { free } }: Range, { namespace, name }: ServiceName): (count: number) => boolean {
  const own = unclaimed.filter((each) => each.namespace === namespace);
  const [ownBits, ownBytes] = [countUnclaimed(own), bytesOf(own)];
  const roomBytes = MOST_UNCLAIMED_BYTES - bytesOf(unclaimed);
  return (count) => {
    const bytes = namespace.length + name.length + (2 + count) * ENTRY_BYTES;
    const hasRoom = ownBytes + bytes <= roomBytes - bytes;
    return count === 0 || (hasRoom && count <= free && ownBits + count <= Math.max(LEAST_UNCLAIMED, free - count));
  };
}

function bytesOf(unclaimed: readonly Unclaimed[]): number {
  const namespaces = new Set(unclaimed.map(({ namespace }) => namespace));
  const names = [...namespaces, ...unclaimed.map(({ name }) => name)];
  return names.reduce((sum, { length }) => sum + length + ENTRY_BYTES, countUnclaimed(unclaimed) * ENTRY_BYTES);
}

function tooManyUnclaimed({ namespace }: ServiceName): Refusal {
  return refused(
    'TooManyUnclaimed',
    `new Services of namespace ${namespace} already have as much as is left for all others, and no repair pass has seen them yet: try again in some minutes`,
  );
}

function bitsOf(range: Range, items: readonly string[]): readonly number[] {
  return items.flatMap((item) => range.taken.indexOf(item) ?? []);
}
