import { itemsOf } from './control-plane.ts';
import type { Process } from './process.ts';
import { INTERVAL_MS } from './settings.ts';
import type { TableWrite } from './stand-in-table.ts';
import { hasItem, keyOf, RANGE_KEYS, type StoredRangeItem, sizeOf, storedRangeIn } from './stored-items.ts';
import type { World } from './world.ts';

/** A namespace whose quota refuses its Services. */
export const GREEDY = 'greedy';

export interface Ownership {
  readonly owner: string;
  /** The owner is a Service, or a hold that only Services of its owner may claim. No other owner may have the item. */
  readonly isExclusive: boolean;
  /** Only the owner of the hold may claim it. */
  readonly isForOwner?: boolean;
  readonly untilMs: number;
  readonly sinceMs: number;
}

/** A strike, which happens between the beginning of its pass and the write. */
interface Strike {
  readonly begunAtMs: number;
  readonly atMs: number;
}

/** The largest difference between the clocks of two functions. */
const SKEWS_MS = 4_000;
const BETWEEN_STRIKES_MS = (INTERVAL_MS * 2) / 3 - SKEWS_MS;
/** The number of items that a namespace may always have. */
const LEAST_SHARE = 16;
/** A pass frees held items this long after the end of their hold, by its own clock. */
const HOLD_MARGIN_MS = 5_000 - SKEWS_MS / 2;

/**
 * Records which owner has each address and port, as the owners know it, and what the table stores. Checks every write of a
 * range against both.
 */
export class RangeTruth {
  readonly #world: World;
  readonly #owners = new Map<string, Ownership[]>();
  /** The strikes of an item since it was last allocated, held or released. */
  readonly #sightings = new Map<string, readonly Strike[]>();
  readonly #claimedAtMs = new Map<string, number>();
  readonly #freedAtMs = new Map<string, number>();
  readonly #observedAtMs = new Map<string, number>();
  /** The keys of the ranges in which the table must know every owner. A key is added once a pass has seen the Services. */
  readonly #records = new Set<string>();
  #changedAtMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Records that an owner has the item, as an answer states. */
  own(item: string, { sinceMs = this.#now, untilMs = Number.POSITIVE_INFINITY, ...rest }: OwnershipFields): void {
    const now: Ownership = { ...rest, sinceMs, untilMs };
    // The answer is ignored because it is too old: its hold has ended, or the range has changed in the meantime.
    if (untilMs <= this.#now || (!isOfService(now) && sinceMs < this.#changedAtMs)) return;
    this.#world.note(`${now.owner} has ${item}`);
    const others = this.ownersOf(item).filter(({ owner }) => owner !== now.owner);
    if (others.length > 0) {
      const names = others.map(({ owner }) => owner).join(', ');
      this.#world.violate('twoOwners', `${item} is given to ${now.owner} and belongs to ${names}`);
    }
    this.#owners.set(item, [...others, now]);
    this.#checkTaken(item);
  }

  end(item: string, owner: string): void {
    const kept = (this.#owners.get(item) ?? []).filter((each) => each.owner !== owner);
    this.#owners.set(item, kept);
  }

  ownersOf(item: string): Ownership[] {
    return (this.#owners.get(item) ?? []).filter(({ untilMs }) => untilMs > this.#now);
  }

  owned(): string[] {
    return [...this.#owners.keys()].filter((item) => this.ownersOf(item).length > 0);
  }

  /** Records that a request claimed the item from the hold that it found. */
  claimed(item: string): void {
    this.#claimedAtMs.set(item, this.#now);
  }

  /** Records that a Service may have claimed the item from a hold for any Service. */
  claimedByService(item: string): void {
    this.claimed(item);
    const isForAny = ({ isExclusive, isForOwner }: Ownership) => !isExclusive && isForOwner !== true;
    for (const { owner } of this.ownersOf(item).filter(isForAny)) this.end(item, owner);
  }

  wasClaimedSince(item: string, sinceMs: number): boolean {
    return (this.#claimedAtMs.get(item) ?? 0) > sinceMs;
  }

  /** Records a restore of the table: strikes are those of the restored table, and the owners know that their holds are lost. */
  restored(): void {
    this.#sightings.clear();
    this.#observedAtMs.clear();
    for (const key of RANGE_KEYS) {
      for (const [item, strikes] of this.#world.table.stored(key).strikes)
        this.#sightings.set(item, Array(strikes).fill({ begunAtMs: 1, atMs: 1 }));
    }
    this.#endHolds(() => true);
  }

  /** Records a change of a range in the spec: a pass drops holds outside the new range. */
  rangeChanged(): void {
    this.#changedAtMs = this.#now;
    this.#endHolds((item) => !this.#world.cluster.isInSpec(item));
  }

  #endHolds(isLost: (item: string) => boolean): void {
    for (const [item, owners] of this.#owners) {
      if (isLost(item)) this.#owners.set(item, owners.filter(isOfService));
    }
  }

  /** Records that from now on the table must know every owner in the range. */
  setRecord(key: string): void {
    if (this.#records.has(key)) return;
    this.#records.add(key);
    this.#checkAllTaken(key);
  }

  /** Records that from now on the table might not know every owner. */
  clearRecords(): void {
    this.#records.clear();
  }

  isRecord(key: string): boolean {
    return this.#records.has(key);
  }

  /** Records that a run record of an observing pass was saved: strikes count from zero. */
  observed(key: string): void {
    this.#observedAtMs.set(key, this.#now);
  }

  /** Records that a caller was told that the item is free, and checks that it was freed. */
  toldReleased(item: string, owner: string, sentAtMs: number): void {
    if ((this.#freedAtMs.get(item) ?? 0) >= sentAtMs) return;
    this.#world.violate('toldReleased', `${owner} was told that ${item} is released, and nothing released it`);
  }

  check(write: TableWrite): void {
    const [before, after] = [storedRangeIn(write.before), storedRangeIn(write.after)];
    const key = write.key;
    if (after.generation < before.generation) {
      this.#world.violate(
        'generation',
        `${write.by.name} put ${key} back to generation ${after.generation} of ${before.generation}`,
      );
    }
    if (write.by.kind === 'admission') this.#checkShares(before, after);
    if (!write.by.kind.endsWith('epair')) this.#checkClaims(before, after, write);
    if (before.range !== after.range) this.#checkAllTaken(key);
    for (const item of before.taken) if (!after.taken.has(item)) this.#freed(item, write, before, after.range);
    for (const item of after.taken) this.#checkStrikes(item, before, after, write);
  }

  /** Checks that no write claims a hold that had expired when the write was sent, because another Service may have its item. */
  #checkClaims(before: StoredRangeItem, after: StoredRangeItem, { by, sentAtMs }: TableWrite): void {
    for (const [item, { requestId, owner, untilMs }] of before.holds) {
      const isClaimed = after.taken.has(item) && after.holds.get(item)?.requestId !== requestId;
      if (isClaimed && untilMs + SKEWS_MS < sentAtMs)
        this.#world.violate('expired', `${by.name} claimed ${item} from ${owner}, whose hold has ended`);
    }
  }

  /**
   * Checks that a namespace gets no further items if it has more unclaimed items than are free for all others. Claimed holds are
   * not part of its unclaimed items.
   */
  #checkShares(before: StoredRangeItem, after: StoredRangeItem): void {
    const free = sizeOf(after.range) - after.taken.size;
    for (const [namespace, own] of after.unclaimed) {
      if (namespace !== GREEDY) continue;
      if (own <= (before.unclaimed.get(namespace) ?? 0) || own <= Math.max(LEAST_SHARE, free)) continue;
      this.#world.violate('greedy', `${namespace} has ${own} items without a Service, and ${free} are left`);
    }
  }

  #freed(item: string, { by, key, begunAtMs }: TableWrite, before: StoredRangeItem, range: string): void {
    const { nowMs } = this.#world.clock;
    this.#freedAtMs.set(item, nowMs);
    const hold = before.holds.get(item);
    const counted = this.#counted(this.#sightings.get(item) ?? [], key, begunAtMs);
    this.#sightings.delete(item);
    this.#world.note(`${by.name} freed ${item}`);
    if (this.isRecord(key)) this.#checkFree(item, by.name);
    if (!by.kind.endsWith('epair') || (hold !== undefined && hold.untilMs + HOLD_MARGIN_MS <= nowMs)) return;
    // A pass with an older spec may write the range of that spec, from which nothing is allocated.
    const isInRange = this.#world.cluster.isInSpec(item) && hasItem(range, item);
    const enough = counted.length >= 2 && nowMs - lastIn(counted) >= BETWEEN_STRIKES_MS;
    if (!enough && isInRange) {
      this.#world.violate('strikes', `${by.name} freed ${item} after ${counted.length} strikes that count`);
    }
  }

  #checkStrikes(
    item: string,
    before: StoredRangeItem,
    after: StoredRangeItem,
    { by, key, begunAtMs }: TableWrite,
  ): void {
    const isSame = before.taken.has(item) && before.holds.get(item)?.owner === after.holds.get(item)?.owner;
    const seen = isSame ? (this.#sightings.get(item) ?? []) : [];
    const counted = by.kind.endsWith('epair') ? this.#counted(seen, key, begunAtMs) : seen;
    const is = after.strikes.get(item) ?? 0;
    if (is <= counted.length) return void this.#sightings.set(item, counted.slice(0, is));
    this.#sightings.set(item, [...counted, { begunAtMs, atMs: this.#now }]);
    this.#checkUnclaimed(item, by, begunAtMs);
    // A pass adds a strike at some time between its beginning and its write.
    if (is === counted.length + 1 && this.#now - lastIn(counted) >= BETWEEN_STRIKES_MS) return;
    this.#world.violate('strikes', `${by.name} struck ${item} ${is} times, after ${counted.length} strikes that count`);
  }

  /** Checks that no Service had the item before the pass. After a move, a pass may list the former control plane. */
  #checkUnclaimed(item: string, by: Process, begunAtMs: number): void {
    const { plane, hasMoved } = this.#world.servers;
    const owner = plane.services().find((service) => itemsOf(service).includes(item));
    if (hasMoved || Date.parse(owner?.metadata.creationTimestamp ?? '') >= begunAtMs || owner === undefined) return;
    this.#world.violate('strikes', `${by.name} struck ${item}, which ${owner.metadata.name} had before the pass`);
  }

  /** Returns the strikes that count: a pass that began after an observing pass was recorded ignores the strikes before it. */
  #counted(strikes: readonly Strike[], key: string, begunAtMs: number): readonly Strike[] {
    const observedAtMs = this.#observedAtMs.get(key) ?? 0;
    return observedAtMs > begunAtMs ? strikes : strikes.filter(({ atMs }) => atMs > observedAtMs);
  }

  #checkAllTaken(key: string): void {
    for (const item of this.owned()) if (keyOf(item) === key) this.#checkTaken(item);
  }

  #checkTaken(item: string): void {
    const key = keyOf(item);
    if (!this.isRecord(key) || this.#world.table.stored(key).taken.has(item)) return;
    this.#checkFree(item, 'the table');
  }

  #checkFree(item: string, by: string): void {
    const owners = this.ownersOf(item).map(({ owner }) => owner);
    if (owners.length > 0 && this.#world.cluster.isInSpec(item))
      this.#world.violate('freed', `${by} has ${item} free, and it belongs to ${owners.join(', ')}`);
  }

  get #now(): number {
    return this.#world.clock.nowMs;
  }
}

type OwnershipFields = Pick<Ownership, 'owner' | 'isExclusive'> &
  Partial<Pick<Ownership, 'untilMs' | 'sinceMs' | 'isForOwner'>>;

function isOfService({ untilMs }: Ownership): boolean {
  return untilMs === Number.POSITIVE_INFINITY;
}

function lastIn(strikes: readonly Strike[]): number {
  return Math.max(0, ...strikes.map(({ begunAtMs }) => begunAtMs));
}
