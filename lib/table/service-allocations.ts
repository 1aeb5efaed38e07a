import { AllocatorError } from '../allocator/errors.ts';
import { countUnclaimed, type ServiceName, type Unclaimed, unclaimedOf } from '../cluster/stored-range.ts';
import type { RangeDraft } from './range-draft.ts';
import { allocateAll, type Claim, type Refused, type Requested } from './range-operations.ts';

export interface ServiceAllocationOptions<Item> {
  readonly service: ServiceName;
  /** The Service is created: one of that name may exist with what was allocated first, so that `next` is never of that. */
  readonly isNew: boolean;
  /** What the Service has or requests by value: no `next` is one of them. */
  readonly named: readonly Item[];
  readonly claim: Claim;
}

export type ServiceAllocation<Item> =
  | {
      readonly outcome: 'allocated';
      /** In the order of the request. */
      readonly items: readonly Item[];
      readonly undo: Undo<Item>;
    }
  | Refused;

/** What one review allocated: it can be undone until another review of the Service is answered. */
export interface Undo<Item> {
  readonly service: ServiceName;
  readonly reviews: number;
  readonly items: readonly Item[];
}

/** A namespace gets this many items in any case, so that the last ones of a range can be allocated. */
const LEAST_UNCLAIMED = 16;
/** Kept in the item of the range: some 2,000 Services, and of one namespace half as many. */
const MOST_UNCLAIMED_BYTES = 64 * 1024;
/** A bit and its comma, in the largest range. */
const BIT_BYTES = 8;
/** What a line, or a namespace, takes beside its name. */
const NAME_BYTES = 8;

/**
 * Allocates all that a Service lacks, or nothing. Unclaimed items of the Service are its own already. After a refusal
 * the draft is half changed and must not be stored.
 */
export function allocateForService<Item>(
  draft: RangeDraft<Item>,
  requested: readonly Requested<Item>[],
  options: ServiceAllocationOptions<Item>,
): ServiceAllocation<Item> {
  const { service, isNew, claim } = options;
  const before = unclaimedOf(draft.unclaimed, service);
  const mayAllocate = limitFor(draft, service);
  const items = ownItems(draft, requested, options, mayAllocate);
  const missing = [...requested.keys()].filter((place) => items[place] === undefined);
  const held = new Set(requested.flatMap((each) => (each === 'next' || !draft.holdOn(each.value) ? [] : [each.value])));
  const allocated = allocateAll(
    draft,
    missing.flatMap((place) => requested[place] ?? []),
    { claim },
  );
  if (allocated.outcome === 'refused') {
    const index = allocated.index === undefined ? undefined : missing[allocated.index];
    return { outcome: 'refused', error: allocated.error, ...(index !== undefined && { index }) };
  }
  // An undo would free what was held: it stays allocated, and a pass frees it.
  const wasFree = allocated.items.filter((item) => !held.has(item));
  if (!mayAllocate(wasFree.length)) return { outcome: 'refused', error: tooManyUnclaimed(service) };
  for (const [place, item] of allocated.items.entries()) items[missing[place] ?? -1] = item;

  const fresh = bitsOf(draft, allocated.items);
  const reviews = before.reviews + 1;
  const next =
    isNew && before.reviews > 0
      ? { ...before, reviews, later: [...before.later, ...fresh] }
      : { ...before, reviews, first: [...before.first, ...fresh] };
  const all = items.filter((item) => item !== undefined);
  draft.recordUnclaimed(next, bitsOf(draft, all));
  return { outcome: 'allocated', items: all, undo: { service, reviews, items: wasFree } };
}

export function undoAllocation<Item>(draft: RangeDraft<Item>, { service, reviews, items }: Undo<Item>): void {
  const now = unclaimedOf(draft.unclaimed, service);
  if (now.reviews !== reviews) return;
  const own = new Set([...now.first, ...now.later]);
  for (const item of items) if (own.has(draft.bitOf(item) ?? -1)) draft.release(item);
}

/** Which of the requested items this Service has unclaimed already, by place. */
function ownItems<Item>(
  draft: RangeDraft<Item>,
  requested: readonly Requested<Item>[],
  { service, isNew, named }: ServiceAllocationOptions<Item>,
  mayAllocate: (count: number) => boolean,
): (Item | undefined)[] {
  const { first, later } = unclaimedOf(draft.unclaimed, service);
  const isOwn = (bit: number) => draft.has(draft.itemAt(bit)) && draft.holdOn(draft.itemAt(bit)) === undefined;
  const own = new Set([...later, ...first].filter(isOwn));
  const isNamed = new Set(bitsOf(draft, named));
  const spare = [...own].filter((bit) => !isNamed.has(bit));
  const spareLater = spare.filter((bit) => later.includes(bit));
  const lacking = requested.filter((each) => each === 'next').length - spareLater.length;
  // What was allocated first comes last: a Service of that name may exist with it.
  const left = isNew && (lacking <= 0 || mayAllocate(lacking)) ? spareLater : spare;
  return requested.map((each) => {
    const bit = each === 'next' ? left.shift() : draft.bitOf(each.value);
    // The range refuses the same one twice.
    return bit !== undefined && own.delete(bit) ? draft.itemAt(bit) : undefined;
  });
}

/**
 * A Service that is refused later, by a quota or validation, keeps what was allocated until it is freed as a leak. So
 * that no namespace can exhaust the range like this, it never has more unclaimed than is left for all others: of the
 * items, and of the bytes that record them.
 */
function limitFor<Item>(
  { unclaimed, free }: RangeDraft<Item>,
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

function tooManyUnclaimed({ namespace }: ServiceName): AllocatorError {
  return new AllocatorError(
    'TooManyUnclaimed',
    `new Services of namespace ${namespace} have as much as is left for all others, and no repair pass has seen them yet: try again in some minutes`,
  );
}

function bitsOf<Item>(draft: RangeDraft<Item>, items: readonly Item[]): readonly number[] {
  return items.flatMap((item) => draft.bitOf(item) ?? []);
}
