import { type Hold, type HoldTerms, sameTerms } from './hold.ts';

/*
 * The holds of one range as a whole. An item is in one hold at most; items on the same terms are in one hold, and a
 * hold without items is none.
 */

export function holdOn(holds: readonly Hold[], item: string): Hold | undefined {
  return holds.find(({ items }) => items.includes(item));
}

/** The holds by their items. Of two that hold one item the first counts. */
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

/** Holds the items on these terms, whatever held them before. */
export function withHold(holds: readonly Hold[], items: readonly string[], terms: HoldTerms): readonly Hold[] {
  if (items.length === 0) return holds;
  const others = withoutHolds(holds, items);
  const at = others.findIndex((hold) => sameTerms(hold, terms));
  const alike = others[at];
  return alike === undefined
    ? [...others, { ...termsOf(terms), items: [...items] }]
    : others.with(at, { ...alike, items: [...alike.items, ...items] });
}

/** Whether both hold the same items on the same terms, in whatever order. */
export function sameHolds(one: readonly Hold[], other: readonly Hold[]): boolean {
  if (one.length === 0 && other.length === 0) return true;
  const byItem = holdsByItem(one);
  const others = holdsByItem(other);
  if (byItem.size !== others.size) return false;
  for (const [item, hold] of byItem) {
    const counterpart = others.get(item);
    if (counterpart === undefined || !sameTerms(hold, counterpart)) return false;
  }
  return true;
}

/** The terms alone, without what else the object may carry. */
export function termsOf({ owner, untilMs, takenUpBy, requestId }: HoldTerms): HoldTerms {
  return {
    owner,
    takenUpBy,
    ...(untilMs !== undefined && { untilMs }),
    ...(requestId !== undefined && { requestId }),
  };
}
