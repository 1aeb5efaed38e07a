import { isDeepStrictEqual } from 'node:util';
import { defined } from '../util/values.ts';

/**
 * A reservation of addresses or ports without a Service, for an owner, until a time or forever. The reservation ends when a
 * Service claims the item, when the owner releases the item, or at `untilMs`. Items that were allocated together share a hold.
 */
export interface Hold extends HoldTerms {
  /** The held items: canonical addresses, or ports as text. There is at least one item. */
  readonly items: readonly string[];
}

export interface HoldTerms {
  /** The owner, in the syntax of a label value: 1 to 63 of `A-Z a-z 0-9 - _ .`, with a letter or digit first and last. */
  readonly owner: string;
  readonly untilMs?: number;
  /** The Services that may claim the items: `any`, or those whose label `kube-bootstrap-controller/hold-owner` equals the owner. */
  readonly takenUpBy: 'any' | 'owner';
  readonly requestId?: string;
}

export const HOLD_OWNER_SYNTAX = '1 to 63 of A-Z, a-z, 0-9, "-", "_" and ".", a letter or digit first and last';
export const HOLD_OWNER = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

export function isOver(hold: HoldTerms, nowMs: number): boolean {
  return hold.untilMs !== undefined && hold.untilMs <= nowMs;
}

/**
 * A pass frees a held item this long after the end of its hold, because the clocks of functions and owners differ by up to
 * two seconds. No Service can claim the item after `untilMs`.
 */
const HOLD_END_MARGIN_MS = 5_000;

/** Returns true if a hold has ended even on the clock that is furthest behind (`HOLD_END_MARGIN_MS`). */
export function isSurelyOver(hold: HoldTerms, nowMs: number): boolean {
  return isOver(hold, nowMs - HOLD_END_MARGIN_MS);
}

/** Returns whether a Service may claim a held item. `holdOwner` is the value of the Service's label, if it has the label. */
export function mayClaim({ takenUpBy, owner }: HoldTerms, holdOwner: string | undefined): boolean {
  return takenUpBy === 'any' || holdOwner === owner;
}

const TERMS = ['owner', 'untilMs', 'takenUpBy', 'requestId'] as const;

/** Must be fast, because a list of all holds of a cluster compares each hold with the others. */
export function sameTerms(one: HoldTerms, other: HoldTerms): boolean {
  return TERMS.every((term) => one[term] === other[term]);
}

/* Operations on the holds of one range. An item has at most one hold. Items with the same terms share a hold. */

export function holdOn(holds: readonly Hold[], item: string): Hold | undefined {
  return holds.find(({ items }) => items.includes(item));
}

/** Returns the hold of each item. If two holds contain the same item, the first hold counts. */
export function holdsByItem(holds: readonly Hold[]): Map<string, Hold> {
  const byItem = new Map<string, Hold>();
  for (const hold of holds) {
    for (const item of hold.items) if (!byItem.has(item)) byItem.set(item, hold);
  }
  return byItem;
}

export function withoutHolds(holds: readonly Hold[], items: Iterable<string>): readonly Hold[] {
  const gone = new Set(items);
  if (gone.size === 0 || holds.length === 0) return holds;
  return holds.flatMap((hold) => {
    const left = hold.items.filter((item) => !gone.has(item));
    return left.length === 0 ? [] : [left.length === hold.items.length ? hold : { ...hold, items: left }];
  });
}

/** Returns the holds after the items were held on these terms. Earlier holds of the items end. */
export function withHold(holds: readonly Hold[], items: readonly string[], terms: HoldTerms): readonly Hold[] {
  if (items.length === 0) return holds;
  const others = withoutHolds(holds, items);
  const at = others.findIndex((hold) => sameTerms(hold, terms));
  const alike = others[at];
  return alike === undefined
    ? [...others, { ...termsOf(terms), items: [...items] }]
    : others.with(at, { ...alike, items: [...alike.items, ...items] });
}

export function sameHolds(one: readonly Hold[], other: readonly Hold[]): boolean {
  const termsByItem = (holds: readonly Hold[]) =>
    new Map([...holdsByItem(holds)].map(([item, hold]) => [item, termsOf(hold)]));
  return isDeepStrictEqual(termsByItem(one), termsByItem(other));
}

export function termsOf({ owner, untilMs, takenUpBy, requestId }: HoldTerms): HoldTerms {
  return { owner, takenUpBy, ...defined({ untilMs, requestId }) };
}
