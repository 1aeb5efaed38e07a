import { itemsOf } from './control-plane.ts';
import type { Process } from './process.ts';
import { INTERVAL_MS } from './settings.ts';
import type { TableWrite } from './stand-in-table.ts';
import { hasItem, keyOf, RANGE_KEYS, type StoredRangeItem, sizeOf, storedRangeIn } from './stored-items.ts';
import { GREEDY, type World } from './world.ts';

export interface Ownership {
  readonly owner: string;
  /** A Service, or a hold that is for a Service of its own, is never another's. */
  readonly isExclusive: boolean;
  /** A hold that only its owner may claim. */
  readonly isForOwner?: boolean;
  readonly untilMs: number;
  readonly sinceMs: number;
}

/** It falls at some time from the beginning of its pass to the write. */
interface Strike {
  readonly begunAtMs: number;
  readonly atMs: number;
}

/** Clocks of two functions. */
const SKEWS_MS = 4_000;
const BETWEEN_STRIKES_MS = (INTERVAL_MS * 2) / 3 - SKEWS_MS;
/** A namespace may have so many in any case. */
const LEAST_SHARE = 16;
/** A pass frees what was held this long after its end, by its own clock. */
const HOLD_MARGIN_MS = 5_000 - SKEWS_MS / 2;

/**
 * Who owns which address and port, as their owners know it, and what the table makes of it: every write of a range is held
 * against both.
 */
export class RangeTruth {
  readonly #world: World;
  readonly #owners = new Map<string, Ownership[]>();
  /** The strikes of an item, since it was allocated, held or released last. */
  readonly #sightings = new Map<string, readonly Strike[]>();
  readonly #claimedAtMs = new Map<string, number>();
  readonly #freedAtMs = new Map<string, number>();
  readonly #observedAtMs = new Map<string, number>();
  /** Ranges in which the table has to have every owner: not before a pass has seen the Services. */
  readonly #records = new Set<string>();
  #changedAtMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Takes an item as its owner's, as an answer says. */
  own(item: string, { sinceMs = this.#now, untilMs = Number.POSITIVE_INFINITY, ...rest }: OwnershipFields): void {
    const now: Ownership = { ...rest, sinceMs, untilMs };
    // An answer of long ago.
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

  /** A request took the item over from the hold that it found. */
  claimed(item: string): void {
    this.#claimedAtMs.set(item, this.#now);
  }

  wasClaimedSince(item: string, sinceMs: number): boolean {
    return (this.#claimedAtMs.get(item) ?? 0) > sinceMs;
  }

  /** The table was restored: strikes are those that it has, and its owners were told that their holds are lost. */
  restored(): void {
    this.#sightings.clear();
    this.#observedAtMs.clear();
    for (const key of RANGE_KEYS) {
      for (const [item, strikes] of this.#world.stored(key).strikes)
        this.#sightings.set(item, Array(strikes).fill({ begunAtMs: 1, atMs: 1 }));
    }
    this.#endHolds(() => true);
  }

  /** A range of the spec changed: a pass drops what is held outside of it. */
  rangeChanged(): void {
    this.#changedAtMs = this.#now;
    this.#endHolds((item) => !this.#world.isInSpec(item));
  }

  #endHolds(isLost: (item: string) => boolean): void {
    for (const [item, owners] of this.#owners) {
      if (isLost(item)) this.#owners.set(item, owners.filter(isOfService));
    }
  }

  /** Whether the table has to have every owner from now on. */
  setRecord(key: string, isRecord: boolean): void {
    if (!isRecord) this.#records.delete(key);
    else if (!this.#records.has(key)) {
      this.#records.add(key);
      for (const item of this.owned()) if (keyOf(item) === key) this.#checkTaken(item);
    }
  }

  isRecord(key: string): boolean {
    return this.#records.has(key);
  }

  /** A pass that only observed was recorded: strikes count from zero. */
  observed(key: string): void {
    this.#observedAtMs.set(key, this.#now);
  }

  /** A caller was told that the item is free again. */
  toldReleased(item: string, owner: string, sentAtMs: number): void {
    if ((this.#freedAtMs.get(item) ?? 0) >= sentAtMs) return;
    this.#world.violate('toldReleased', `${owner} was told that ${item} is released, and nothing released it`);
  }

  /** Called after each write of a range. */
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
    if (before.range !== after.range && this.isRecord(key)) {
      for (const item of this.owned()) if (keyOf(item) === key) this.#checkTaken(item);
    }
    for (const item of before.taken) if (!after.taken.has(item)) this.#freed(item, write, before, after.range);
    for (const item of after.taken) this.#checkStrikes(item, before, after, write);
  }

  /** A namespace that only allocates gets no more than is left for all others. What others claim of holds does not count. */
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
    // A pass of an older spec may write its range, from which nothing is allocated.
    const isInRange = this.#world.isInSpec(item) && hasItem(range, item);
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
    // A pass strikes at some time between its beginning and its write.
    if (is === counted.length + 1 && this.#now - lastIn(counted) >= BETWEEN_STRIKES_MS) return;
    this.#world.violate('strikes', `${by.name} struck ${item} ${is} times, after ${counted.length} strikes that count`);
  }

  /** A pass lists the Services of its own time. Of two control planes it may list the former one. */
  #checkUnclaimed(item: string, by: Process, begunAtMs: number): void {
    const { plane, hasMoved } = this.#world.servers;
    const owner = plane.services().find((service) => itemsOf(service).includes(item));
    if (hasMoved || Date.parse(owner?.metadata.creationTimestamp ?? '') >= begunAtMs || owner === undefined) return;
    this.#world.violate('strikes', `${by.name} struck ${item}, which ${owner.metadata.name} had before the pass`);
  }

  /** Strikes from before a time of observing do not count in a pass that began after it. */
  #counted(strikes: readonly Strike[], key: string, begunAtMs: number): readonly Strike[] {
    const observedAtMs = this.#observedAtMs.get(key) ?? 0;
    return observedAtMs > begunAtMs ? strikes : strikes.filter(({ atMs }) => atMs > observedAtMs);
  }

  #checkTaken(item: string): void {
    const key = keyOf(item);
    if (!this.isRecord(key) || this.#world.stored(key).taken.has(item)) return;
    this.#checkFree(item, 'the table');
  }

  #checkFree(item: string, by: string): void {
    const owners = this.ownersOf(item).map(({ owner }) => owner);
    if (owners.length > 0 && this.#world.isInSpec(item))
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
