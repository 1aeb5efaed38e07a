import { isRefused, type Refusal, refused } from '../allocator/refusal.ts';
import { allocateAll, type Changed, type HoldClaim, type Requested } from './operations.ts';
import type { Range } from './range.ts';
import { countUnclaimed, type ServiceName, type Unclaimed, unclaimedOf } from './stored-range.ts';

export interface ServiceAllocationOptions<Item> {
  readonly service: ServiceName;
  /** The Service is created: an existing one of that name may have the first items, so `next` never uses those. */
  readonly isNew: boolean;
  /** The items that the Service has or requests by value: `next` never uses them. */
  readonly named: readonly Item[];
  readonly claim: HoldClaim;
}

export type ServiceAllocation<Item> =
  | {
      readonly outcome: 'allocated';
      readonly items: readonly Item[];
      readonly undo: Undo<Item>;
    }
  | Refusal;

/** The allocation of one review: it can be undone until another review of the Service is answered. */
export interface Undo<Item> {
  readonly service: ServiceName;
  readonly reviews: number;
  readonly items: readonly Item[];
}

/** A namespace gets this many items in any case, so that the last ones of a range can be allocated. */
const LEAST_UNCLAIMED = 16;
/** The space in the range's item: about 2,000 Services, half of them of one namespace. */
const MOST_UNCLAIMED_BYTES = 64 * 1024;
/** The bytes of a bit and its comma, in the largest range. */
const BIT_BYTES = 8;
/** The bytes of a line, or a namespace, besides its name. */
const NAME_BYTES = 8;

/** Allocates all that a Service lacks, or nothing. Unclaimed items of the Service are its own already. */
export function allocateForService<Item>(
  range: Range<Item>,
  requested: readonly Requested<Item>[],
  options: ServiceAllocationOptions<Item>,
): Changed<Item, ServiceAllocation<Item>> {
  const { service, isNew, claim } = options;
  const before = unclaimedOf(range.unclaimed, service);
  const mayAllocate = limitFor(range, service);
  const items = ownItems(range, requested, options, mayAllocate);
  const missing = [...requested.keys()].filter((place) => items[place] === undefined);
  const wanted = missing.flatMap((place) => requested[place] ?? []);
  const allocated = allocateAll(range, wanted, { claim });
  if (isRefused(allocated.result)) {
    const place = missing[allocated.result.index ?? -1];
    return { result: { ...allocated.result, ...(place !== undefined && { index: place }) }, range };
  }
  const given = allocated.result.items;
  // An undo would free a held item: it stays allocated, and a pass frees it.
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

/** Releases the items of a review, if no other review of that Service was answered since. */
export function undoAllocation<Item>(
  range: Range<Item>,
  { service, reviews, items }: Undo<Item>,
): Changed<Item, undefined> {
  const now = unclaimedOf(range.unclaimed, service);
  const own = new Set(now.reviews === reviews ? [...now.first, ...now.later] : []);
  const released = items.filter((item) => own.has(range.bitOf(item) ?? -1));
  return { result: undefined, range: released.reduce((left, item) => left.release(item), range) };
}

/** Returns which requested items this Service already has unclaimed, by index. */
function ownItems<Item>(
  range: Range<Item>,
  requested: readonly Requested<Item>[],
  { service, isNew, named }: ServiceAllocationOptions<Item>,
  mayAllocate: (count: number) => boolean,
): (Item | undefined)[] {
  const { first, later } = unclaimedOf(range.unclaimed, service);
  const isOwn = (bit: number) => range.has(range.itemAt(bit)) && range.holdOn(range.itemAt(bit)) === undefined;
  const own = new Set([...later, ...first].filter(isOwn));
  const isNamed = new Set(bitsOf(range, named));
  const spare = [...own].filter((bit) => !isNamed.has(bit));
  const spareLater = spare.filter((bit) => later.includes(bit));
  const lacking = requested.filter((each) => each === 'next').length - spareLater.length;
  // The first items come last: a Service of that name may have them.
  const left = isNew && (lacking <= 0 || mayAllocate(lacking)) ? spareLater : spare;
  return requested.map((each) => {
    const bit = each === 'next' ? left.shift() : range.bitOf(each.value);
    // The range refuses the same item twice.
    return bit !== undefined && own.delete(bit) ? range.itemAt(bit) : undefined;
  });
}

/**
 * Returns the limit of a namespace. A Service that is refused later, by a quota or validation, keeps its items until
 * they are freed as leaks. So a namespace never has more unclaimed items than are left for all others: of the range,
 * and of the bytes that record them.
 */
function limitFor<Item>(
  { unclaimed, free }: Range<Item>,
  { namespace, name }: ServiceName,
): (count: number) => boolean {
  const own = unclaimed.filter((each) => each.namespace === namespace);
  const [ownBits, ownBytes] = [countUnclaimed(own), bytesOf(own)];
  const roomBytes = MOST_UNCLAIMED_BYTES - bytesOf(unclaimed);
  return (count) => {
    const bytes = namespace.length + name.length + 2 * NAME_BYTES + count * BIT_BYTES;
    const hasRoom = ownBytes + bytes <= roomBytes - bytes;
    return count === 0 || (hasRoom && count <= free && ownBits + count <= Math.max(LEAST_UNCLAIMED, free - count));
  };
}

function bytesOf(unclaimed: readonly Unclaimed[]): number {
  const namespaces = new Set(unclaimed.map(({ namespace }) => namespace));
  const names = [...namespaces, ...unclaimed.map(({ name }) => name)];
  return names.reduce((sum, { length }) => sum + length + NAME_BYTES, countUnclaimed(unclaimed) * BIT_BYTES);
}

function tooManyUnclaimed({ namespace }: ServiceName): Refusal {
  return refused(
    'TooManyUnclaimed',
    `new Services of namespace ${namespace} already have as much as is left for all others, and no repair pass has seen them yet: try again in some minutes`,
  );
}

function bitsOf<Item>(range: Range<Item>, items: readonly Item[]): readonly number[] {
  return items.flatMap((item) => range.bitOf(item) ?? []);
}
