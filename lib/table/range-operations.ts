import { AllocatorError } from '../allocator/errors.ts';
import { type Hold, type HoldTerms, holdOn, isOver, mayTakeUp, sameTerms } from '../cluster/hold.ts';
import type { RangeDraft } from './range-draft.ts';
import { MOST_HOLD_BYTES, sizeOfHolds } from './ranges.ts';

/** What is asked of a range: this value, or whichever it gives. */
export type Wanted<Item> = { readonly value: Item } | 'next';

export interface TakeOptions {
  /** Holds what is taken, in the same write. */
  readonly hold?: HoldTerms;
  /**
   * What the request of `hold` holds already counts as taken, so that to take again is to finish what was begun: only
   * what is missing is taken. A request that always asks for the same never has more than that, however often it asks.
   */
  readonly again?: boolean;
  /** For a Service: a value that is held and that it may take up is taken as well, and its hold ends. */
  readonly takeUp?: TakeUp;
}

/** A hold that is over is not taken up: another Service may have done that, and only a pass knows. */
export interface TakeUp {
  /** The label of the Service, if it has one. */
  readonly holdOwner?: string;
  readonly nowMs: number;
  /** Only what is held on these very terms still. Default: on any. */
  readonly from?: readonly Hold[];
}

export interface GiveBackOptions {
  /** Only what this request still holds: the rest has other owners by now. */
  readonly requestId?: string;
  /** What was held like this is not freed, but held so again. */
  readonly former?: readonly Hold[];
  /** Only what this owner holds. */
  readonly owner?: string;
  /** Only what is held as it is here, and what is not in here only if it is not held. */
  readonly heldAs?: readonly Hold[];
  /** Asked right before each write. @throws TableError when the time of the caller is over. */
  readonly checkTime?: () => void;
}

/** Both in canonical form, without what was free before. */
export interface Given<Item> {
  readonly released: readonly Item[];
  /** Left as it is: it is not held as the caller expects. */
  readonly kept: readonly Item[];
}

/** Nothing was changed. */
export interface Refused {
  readonly outcome: 'refused';
  /** Which of what was asked; absent when it is no single one of them. */
  readonly index?: number;
  readonly error: AllocatorError;
}

/** `items` are canonical and in the order in which they were asked for. */
export type Taken<Item> = { readonly outcome: 'taken'; readonly items: readonly Item[] } | Refused;
export type Held = { readonly outcome: 'held' } | Refused;

/** A refusal leaves the draft half changed: nothing of it is to be stored. */
export function takeAll<Item>(
  draft: RangeDraft<Item>,
  wanted: readonly Wanted<Item>[],
  { hold, again, takeUp }: TakeOptions,
): Taken<Item> {
  const own = new Set(again && hold?.requestId !== undefined ? itemsHeldBy(draft, hold.requestId) : []);
  const items: Item[] = [];
  const taken: Item[] = [];
  for (const index of valuesFirst(wanted)) {
    const each = wanted[index] ?? 'next';
    const before = ownItem(draft, own, each);
    if (before !== undefined) {
      items[index] = before;
      continue;
    }
    const now = each === 'next' ? draft.allocateNext() : takeValue(draft, each.value, takeUp);
    if (now instanceof AllocatorError) return { outcome: 'refused', index, error: now };
    items[index] = now.item;
    taken.push(now.item);
  }
  if (taken.length === 0 || hold === undefined) return { outcome: 'taken', items };
  draft.hold(inOrder(items, taken), hold);
  return tooManyHolds(draft) ?? { outcome: 'taken', items };
}

/** @throws what `checkTime` throws. */
export function releaseAll<Item>(
  draft: RangeDraft<Item>,
  items: readonly Item[],
  options: GiveBackOptions,
): Given<Item> {
  options.checkTime?.();
  const released: Item[] = [];
  const kept: Item[] = [];
  for (const item of items) {
    if (!draft.has(item)) continue;
    const text = textOf(draft, item);
    const before = holdOn(options.former ?? [], text);
    if (!mayRelease(draft.holdOn(item), text, options)) kept.push(item);
    else if (before === undefined) released.push(draft.release(item).item);
    else draft.hold([item], before);
  }
  return { released, kept };
}

function mayRelease(hold: Hold | undefined, text: string, { requestId, owner, heldAs }: GiveBackOptions): boolean {
  if (requestId !== undefined && hold?.requestId !== requestId) return false;
  if (owner !== undefined && hold?.owner !== owner) return false;
  const before = heldAs === undefined ? hold : holdOn(heldAs, text);
  return before === undefined || hold === undefined ? before === hold : sameTerms(hold, before);
}

export function itemsHeldBy<Item>(draft: RangeDraft<Item>, requestId: string): readonly Item[] {
  return draft.holds
    .filter((hold) => hold.requestId === requestId)
    .flatMap(({ items }) => items.flatMap((text) => draft.itemOf(text) ?? []));
}

/** A refusal leaves the draft half changed: nothing of it is to be stored. */
export function holdAll<Item>(
  draft: RangeDraft<Item>,
  items: readonly Item[],
  { owner, takenUpBy, untilMs }: Omit<HoldTerms, 'requestId'>,
): Held {
  const terms = { owner, takenUpBy, ...(untilMs !== undefined && { untilMs }) };
  for (const [index, item] of items.entries()) {
    const before = draft.holdOn(item);
    if (before?.owner !== owner) return { outcome: 'refused', index, error: notHeld(item, owner) };
    const { requestId } = before;
    draft.hold([item], { ...terms, ...(requestId !== undefined && { requestId }) });
  }
  return tooManyHolds(draft) ?? { outcome: 'held' };
}

function valuesFirst<Item>(wanted: readonly Wanted<Item>[]): readonly number[] {
  const isNext = (index: number) => Number(wanted[index] === 'next');
  return [...wanted.keys()].sort((one, other) => isNext(one) - isNext(other));
}

/** Takes out of `own` what is wanted, if it is there. Values come first, so that what is left of them is for `next`. */
function ownItem<Item>(draft: RangeDraft<Item>, own: Set<Item>, each: Wanted<Item>): Item | undefined {
  const [first] = own;
  const item = each === 'next' ? first : draft.itemOf(String(each.value));
  return item !== undefined && own.delete(item) ? item : undefined;
}

/** What was taken, as it was asked for. */
function inOrder<Item>(items: readonly Item[], taken: readonly Item[]): readonly Item[] {
  const isTaken = new Set(taken);
  return items.filter((item) => isTaken.has(item));
}

function takeValue<Item>(
  draft: RangeDraft<Item>,
  value: Item,
  takeUp: TakeUp | undefined,
): { readonly item: Item } | AllocatorError {
  const hold = takeUp && draft.holdOn(value);
  if (takeUp === undefined || hold === undefined) return draft.allocate(value);
  const { holdOwner, nowMs, from } = takeUp;
  const expected = from === undefined ? hold : holdOn(from, textOf(draft, value));
  const isTheSame = expected !== undefined && sameTerms(hold, expected);
  const isTakenUp = isTheSame && !isOver(hold, nowMs) && mayTakeUp(hold, holdOwner);
  return isTakenUp ? draft.takeUp(value) : draft.allocate(value);
}

/** As holds name it. */
function textOf<Item>(draft: RangeDraft<Item>, item: Item): string {
  return String(draft.itemOf(String(item)) ?? item);
}

function notHeld(item: unknown, owner: string): AllocatorError {
  return new AllocatorError('NotHeld', `${String(item)} is not held by ${owner}: hold it anew, if it is free`);
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
