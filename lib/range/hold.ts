/**
 * A reservation of addresses or ports without a Service, for an owner, until a time or forever. It ends when a Service
 * claims the item, when it is released, or at its time. Items that were allocated together share one.
 */
export interface Hold extends HoldTerms {
  /** Canonical addresses, or ports as text. At least one. */
  readonly items: readonly string[];
}

export interface HoldTerms {
  /** A label value: 1 to 63 of `A-Z a-z 0-9 - _ .`, a letter or digit first and last. */
  readonly owner: string;
  readonly untilMs?: number;
  /**
   * Which Services may claim the items: `any`, or only those whose label `kube-bootstrap-controller/hold-owner` is
   * the owner.
   */
  readonly takenUpBy: 'any' | 'owner';
  readonly requestId?: string;
}

export const HOLD_OWNER_SYNTAX = '1 to 63 of A-Z, a-z, 0-9, "-", "_" and ".", a letter or digit first and last';
export const HOLD_OWNER = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Returns true after the end of the hold, by the reader's clock. */
export function isOver(hold: HoldTerms, nowMs: number): boolean {
  return hold.untilMs !== undefined && hold.untilMs <= nowMs;
}

/**
 * Clocks of functions and of owners differ by up to two seconds: a pass frees a held item only this long after the end
 * of its hold. Nothing is claimed after `untilMs`.
 */
const HOLD_END_MARGIN_MS = 5_000;

/** Returns true if a hold has ended by every clock. */
export function isSurelyOver(hold: HoldTerms, nowMs: number): boolean {
  return isOver(hold, nowMs - HOLD_END_MARGIN_MS);
}

/** Returns whether a Service may claim a held item. `holdOwner` is the value of its label, if it has one. */
export function mayClaim({ takenUpBy, owner }: HoldTerms, holdOwner: string | undefined): boolean {
  return takenUpBy === 'any' || holdOwner === owner;
}

export function sameTerms(one: HoldTerms, other: HoldTerms): boolean {
  return (
    one.owner === other.owner &&
    one.untilMs === other.untilMs &&
    one.takenUpBy === other.takenUpBy &&
    one.requestId === other.requestId
  );
}

/*
 * Operations on the holds of one range. An item is in at most one hold; items on the same terms share a hold, and a
 * hold without items is removed.
 */

export function holdOn(holds: readonly Hold[], item: string): Hold | undefined {
  return holds.find(({ items }) => items.includes(item));
}

/** Returns the holds by their items. If two have one item, the first counts. */
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

/** Holds the items on these terms, and ends their earlier holds. */
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

export function termsOf({ owner, untilMs, takenUpBy, requestId }: HoldTerms): HoldTerms {
  return {
    owner,
    takenUpBy,
    ...(untilMs !== undefined && { untilMs }),
    ...(requestId !== undefined && { requestId }),
  };
}
