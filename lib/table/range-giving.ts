import { AllocatorError } from '../allocator/errors.ts';
import { countGiven, type Given, givenTo, type ServiceName } from '../cluster/stored-range.ts';
import type { RangeDraft } from './range-draft.ts';
import { type Refused, type Taken, type TakeUp, takeAll, type Wanted } from './range-operations.ts';

export interface GiveOptions<Item> {
  readonly to: ServiceName;
  /** The Service is created: one of that name may exist with what was given first, so that a `next` is never of that. */
  readonly isNew: boolean;
  /** What the Service has or asks for by value: no `next` is one of them. */
  readonly named: readonly Item[];
  readonly takeUp: TakeUp;
}

export type GivenItems<Item> =
  | {
      readonly outcome: 'given';
      /** In the order in which they were asked for. */
      readonly items: readonly Item[];
      readonly undo: Undo<Item>;
    }
  | Refused;

/** What one review took out of a range: it can be given back until another review of the Service is answered. */
export interface Undo<Item> {
  readonly to: ServiceName;
  readonly reviews: number;
  readonly items: readonly Item[];
}

/** A namespace gets this many items in any case, so that the last ones of a range can be given. */
const LEAST_GIVEN = 16;
/** Kept in the item of the range: some 2,000 Services, and of one namespace half as many. */
const MOST_GIVEN_BYTES = 64 * 1024;
/** A bit and its comma, in the largest range. */
const BIT_BYTES = 8;
/** What a line, or a namespace, takes beside its name. */
const NAME_BYTES = 8;

/**
 * Gives a Service all that it lacks, or nothing. What it was given before and no pass has seen in it is still its own. A
 * refusal leaves the draft half changed: nothing of it is to be stored.
 */
export function giveAll<Item>(
  draft: RangeDraft<Item>,
  wanted: readonly Wanted<Item>[],
  options: GiveOptions<Item>,
): GivenItems<Item> {
  const { to, isNew, takeUp } = options;
  const before = givenTo(draft.given, to);
  const mayTake = limitFor(draft, to);
  const items = ownItems(draft, wanted, options, mayTake);
  const missing = [...wanted.keys()].filter((place) => items[place] === undefined);
  const held = new Set(wanted.flatMap((each) => (each === 'next' || !draft.holdOn(each.value) ? [] : [each.value])));
  const taken: Taken<Item> = takeAll(
    draft,
    missing.flatMap((place) => wanted[place] ?? []),
    { takeUp },
  );
  if (taken.outcome === 'refused') {
    const index = taken.index === undefined ? undefined : missing[taken.index];
    return { outcome: 'refused', error: taken.error, ...(index !== undefined && { index }) };
  }
  // Given back, what was held would be free: it stays taken, and a pass frees it.
  const wasFree = taken.items.filter((item) => !held.has(item));
  if (!mayTake(wasFree.length)) return { outcome: 'refused', error: tooManyUnclaimed(to) };
  for (const [place, item] of taken.items.entries()) items[missing[place] ?? -1] = item;

  const fresh = bitsOf(draft, taken.items);
  const reviews = before.reviews + 1;
  const next =
    isNew && before.reviews > 0
      ? { ...before, reviews, later: [...before.later, ...fresh] }
      : { ...before, reviews, first: [...before.first, ...fresh] };
  const all = items.filter((item) => item !== undefined);
  draft.give(next, bitsOf(draft, all));
  return { outcome: 'given', items: all, undo: { to, reviews, items: wasFree } };
}

/** @returns what is free by this. */
export function takeBack<Item>(draft: RangeDraft<Item>, { to, reviews, items }: Undo<Item>): readonly Item[] {
  const now = givenTo(draft.given, to);
  if (now.reviews !== reviews) return [];
  const own = new Set([...now.first, ...now.later]);
  return items.filter((item) => own.has(draft.bitOf(item) ?? -1)).map((item) => draft.release(item).item);
}

/** Which of what is wanted this Service has been given already, by place. */
function ownItems<Item>(
  draft: RangeDraft<Item>,
  wanted: readonly Wanted<Item>[],
  { to, isNew, named }: GiveOptions<Item>,
  mayTake: (count: number) => boolean,
): (Item | undefined)[] {
  const { first, later } = givenTo(draft.given, to);
  const isOwn = (bit: number) => draft.has(draft.itemAt(bit)) && draft.holdOn(draft.itemAt(bit)) === undefined;
  const own = new Set([...later, ...first].filter(isOwn));
  const isNamed = new Set(bitsOf(draft, named));
  const spare = [...own].filter((bit) => !isNamed.has(bit));
  const spareLater = spare.filter((bit) => later.includes(bit));
  const lacking = wanted.filter((each) => each === 'next').length - spareLater.length;
  // What was given first comes last: a Service of that name may exist with it.
  const left = isNew && (lacking <= 0 || mayTake(lacking)) ? spareLater : spare;
  return wanted.map((each) => {
    const bit = each === 'next' ? left.shift() : draft.bitOf(each.value);
    // The same one twice is for the range to refuse.
    return bit !== undefined && own.delete(bit) ? draft.itemAt(bit) : undefined;
  });
}

/**
 * A Service that is refused later, by a quota or validation, keeps what it was given until it is freed as a leak. So that
 * no namespace can take everything like this, it never has more on the way than is left for all others: of the items, and
 * of the bytes in which they are remembered.
 */
function limitFor<Item>(
  { given, free }: RangeDraft<Item>,
  { namespace, name }: ServiceName,
): (count: number) => boolean {
  const own = given.filter((each) => each.namespace === namespace);
  const [ownBits, ownBytes] = [countGiven(own), bytesGiven(own)];
  const roomBytes = MOST_GIVEN_BYTES - bytesGiven(given);
  return (count) => {
    const bytes = namespace.length + name.length + 2 * NAME_BYTES + count * BIT_BYTES;
    const hasRoom = ownBytes + bytes <= roomBytes - bytes;
    return count === 0 || (hasRoom && count <= free && ownBits + count <= Math.max(LEAST_GIVEN, free - count));
  };
}

function bytesGiven(given: readonly Given[]): number {
  const namespaces = new Set(given.map(({ namespace }) => namespace));
  const names = [...namespaces, ...given.map(({ name }) => name)];
  return names.reduce((sum, { length }) => sum + length + NAME_BYTES, countGiven(given) * BIT_BYTES);
}

function tooManyUnclaimed({ namespace }: ServiceName): AllocatorError {
  return new AllocatorError(
    'TooManyUnclaimed',
    `new Services of namespace ${namespace} were given as much as is left for all others, and no repair pass has seen them yet: try again in some minutes`,
  );
}

function bitsOf<Item>(draft: RangeDraft<Item>, items: readonly Item[]): readonly number[] {
  return items.flatMap((item) => draft.bitOf(item) ?? []);
}
