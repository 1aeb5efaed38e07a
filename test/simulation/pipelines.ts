import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import type { Chance } from './clock.ts';
import { CLUSTER } from './cluster.ts';
import { BUSY_MS, withAddress } from './people.ts';
import { keyOf, RANGE_KEYS, type StoredHold } from './stored-items.ts';
import type { World } from './world.ts';

type Request = Omit<AllocateRequest, 'cluster'>;

interface Held {
  readonly id: string;
  readonly items: readonly string[];
  readonly untilMs: number;
  readonly takenUpBy: 'any' | 'owner';
  /** No other pipeline knows of the hold. */
  readonly isPrivate: boolean;
}

const PATIENCE_MS = 32_000;
/** A time longer than any disturbance. */
const DISTURBED_MS = 5 * 60_000;
const AT_ONCE = 8;
/** The time after the end of a hold at which a Service asks for its item, often before a pass has freed it. */
const LATE_MS = 8_000;
/**
 * A time shorter than the 90 s for which a request record is kept here (a day in the real table), so that no request is repeated
 * later.
 */
const RETRIED_MS = 50_000;

/** Pipelines that hold addresses and ports by requests, and then use, release or lose them. */
export class Pipelines {
  readonly #world: World;
  readonly #chance: Chance;
  #requests = 0;
  /** The holds that other pipelines know of and may claim. */
  #known: Held[] = [];

  constructor(world: World) {
    this.#world = world;
    this.#chance = world.chance.of('pipelines');
    world.people.onDeleted = (items) => void this.#releaseDeleted(items);
  }

  async work(): Promise<void> {
    const everyMs = this.#world.has('busy') ? BUSY_MS : this.#chance.oneOf([3_000, 10_000, 30_000]);
    while (this.#world.isFaulty) {
      await this.#world.clock.wait(this.#chance.pick(2 * everyMs) * this.#world.cluster.slowness);
      const isBurst = this.#world.has('contention') && this.#chance.once(6);
      for (let left = isBurst ? AT_ONCE : 1; left > 0; left--) void this.#holdOrClaim();
    }
  }

  #holdOrClaim(): Promise<void> {
    const id = `r${++this.#requests}`;
    const chance = this.#chance.of(id);
    const dry = { cluster: CLUSTER, requestId: `${id}-dry`, operation: 'allocate', dryRun: true };
    if (chance.once(8))
      void this.#world.functions.invoke('allocate', { ...dry, items: this.#wished(chance.of('dry')) });
    const known = this.#known[chance.pick(this.#known.length)];
    return known !== undefined && chance.once(3) ? this.#claim(id, known, chance) : this.#hold(id, chance);
  }

  async #hold(id: string, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    const untilMs = clock.nowMs + chance.oneOf([20_000, 90_000]) + chance.pick(chance.oneOf([40_000, 120_000]));
    const takenUpBy = chance.oneOf<Held['takenUpBy']>(['any', 'owner']);
    const held = await this.#allocate({ id, items: this.#wished(chance), untilMs, takenUpBy }, chance);
    if (held === undefined) return;
    if (!held.isPrivate) this.#known = [...this.#known.slice(-5), held];
    if (this.#world.has('contention')) void this.#wantAtTheEnd(held, chance.of('the end'));
    await clock.wait(chance.pick(chance.oneOf([500, untilMs - clock.nowMs + 5_000])));
    switch (chance.pick(6)) {
      case 0:
        return this.#createService(held, chance);
      case 1:
      case 2:
      case 3:
        return this.#release(held, chance);
      case 4:
        return this.#claim(`${id}-own`, held, chance);
    }
  }

  async #allocate(
    { id, items, untilMs, takenUpBy }: Wanted,
    chance: Chance,
    takeUp?: AllocateRequest['takeUp'],
  ): Promise<Held | undefined> {
    const hold = { owner: id, until: new Date(untilMs).toISOString(), takenUpBy };
    const request = { requestId: id, operation: 'allocate', items, hold, ...(takeUp && { takeUp }) } as const;
    const answer = await this.#ask(request, chance);
    const isOther = takeUp?.holdOwner === id;
    // A cluster that lost its registration refuses without reading what an earlier delivery of the request has done.
    const isUnknown = answer === undefined || answer.error?.code === 'NotRegistered';
    if (isUnknown && takeUp) for (const { value } of items) this.#claimed(String(value), id, isOther);
    // After `NotReady`, another delivery of the same request may have succeeded a moment later, once the range was ready.
    if (answer?.outcome === 'refused' && answer.error?.code !== 'NotReady') void this.#checkNothingLeft(id);
    if (answer?.outcome !== 'done') return undefined;
    const values = answer.items.map(({ value }) => String(value));
    for (const item of values) {
      if (takeUp !== undefined) this.#claimed(item, id, isOther);
      // The answer is old: another request has claimed the hold meanwhile.
      else if (this.#world.ranges.wasClaimedSince(item, this.#world.table.begunAtMs(id))) continue;
      // The answer may be slow: another request may already have found the hold.
      const sinceMs = this.#world.table.begunAtMs(id);
      const isExclusive = takeUp !== undefined;
      this.#world.ranges.own(item, { owner: id, isExclusive, isForOwner: takenUpBy === 'owner', untilMs, sinceMs });
    }
    void this.#checkOnlyThese(id, values);
    return { id, items: values, untilMs, takenUpBy, isPrivate: chance.once(2) };
  }

  /** Records that a hold has lost its owner, if it existed when the request began and the request was allowed to claim it. */
  #claimed(item: string, id: string, isOther: boolean): void {
    this.#world.ranges.claimed(item);
    // A request without a record may still begin after its caller has given up.
    const begunAtMs = this.#world.table.begunAtMs(id) || Number.POSITIVE_INFINITY;
    for (const { owner, isExclusive, isForOwner, sinceMs } of this.#world.ranges.ownersOf(item)) {
      if (!isExclusive && !(isForOwner && isOther) && sinceMs <= begunAtMs) this.#world.ranges.end(item, owner);
    }
  }

  /** Claims held items for a Service that is created afterwards. */
  async #claim(id: string, { items, ...held }: Held, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    // The address of the Service `kubernetes` is refused, and then the items that were claimed before it are held again.
    const wanted = [...items, ...(chance.once(4) ? ['10.0.0.1'] : [])].map(requestFor);
    const untilMs = clock.nowMs + 90_000;
    // A claim with the wrong owner name gets nothing.
    const holdOwner = held.takenUpBy === 'owner' && chance.once(4) ? id : held.id;
    const takeUp = held.takenUpBy === 'owner' || chance.once(2) ? { holdOwner } : {};
    const own = await this.#allocate({ id, items: wanted, untilMs, takenUpBy: 'owner' }, chance, takeUp);
    const addresses = own?.items.filter((item) => !/^\d+$/.test(item)) ?? [];
    // Other pipelines may know of this hold, too, but must not get it.
    if (own !== undefined && chance.once(2)) this.#known = [...this.#known.slice(-5), own];
    if (own === undefined || addresses.length === 0) return;
    await clock.wait(chance.pick(chance.oneOf([100, 30_000])));
    const isLost = (item: string) => this.#world.ranges.ownersOf(item).every(({ owner }) => owner !== id);
    if (clock.nowMs > own.untilMs - 10_000 || own.items.some(isLost)) return;
    for (const item of own.items) this.#world.ranges.end(item, id);
    const service = this.#world.people.place(`of-${id}`, withAddress(...addresses), id);
    await this.#world.people.live(service, chance);
  }

  /** Creates a Service that asks for the held address, so that the webhook claims the hold, or refuses it after the end of the hold. */
  async #createService({ id, items, untilMs }: Held, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    const isOwn = (item: string) => this.#world.ranges.ownersOf(item).some(({ owner }) => owner === id);
    const addresses = items.filter((item) => !/^\d+$/.test(item) && isOwn(item)).slice(0, 1);
    const isLate = chance.once(2);
    if (!this.#world.has('webhook') || addresses.length === 0 || (!isLate && clock.nowMs > untilMs - 20_000)) return;
    if (isLate) await clock.wait(untilMs - clock.nowMs + LATE_MS + chance.pick(LATE_MS));
    for (const item of addresses) this.#world.ranges.end(item, id);
    const wish = { spec: withAddress(...addresses), holdOwner: id };
    const service = await this.#world.people.create(`of-${id}`, wish, chance);
    if (service !== undefined) await this.#world.people.live(service, chance);
  }

  /** Releases the items, sometimes with two requests. Looks them up if the answer does not state the outcome of each item. */
  async #release({ id, items, untilMs, isPrivate, takenUpBy }: Held, chance: Chance): Promise<void> {
    const { ranges, clock } = this.#world;
    const mine = items.filter((item) => ranges.ownersOf(item).some(({ owner }) => owner === id));
    const wanted = mine.map(requestFor);
    if (mine.length === 0) return;
    for (const item of mine) ranges.end(item, id);
    if (this.#world.has('contention')) for (const item of mine) void this.#want(item, chance.of(item));
    // A release without an owner frees the items of any owner, so it is safe only while no other caller can have them.
    const isOnlyIts = isPrivate && takenUpBy === 'owner';
    const isSafe = isOnlyIts && !this.#world.cluster.isAway && untilMs - clock.nowMs > 2 * PATIENCE_MS;
    const release = { operation: 'release', items: wanted, ...(!isSafe && { owner: id }) } as const;
    const sentAtMs = clock.nowMs;
    void this.#cleanUp(id, { ...release, owner: id }, isSafe, chance);
    const endMs = isSafe ? untilMs - PATIENCE_MS : undefined;
    const answer = await this.#ask({ ...release, requestId: `${id}-release` }, chance, endMs);
    const valuesOf = (wanted: string) =>
      answer?.items.flatMap(({ outcome, value }) => (outcome === wanted ? String(value) : [])) ?? [];
    for (const value of valuesOf('released')) {
      ranges.toldReleased(value, id, sentAtMs);
      // The item is free for all callers: another request asks for exactly this item.
      if (chance.once(2)) void this.#want(value, chance);
    }
    if (valuesOf('unknown').length > 0) await this.#lookUp({ id, untilMs }, wanted, chance);
  }

  /**
   * Releases the items of a deleted Service once, as an API server with the table as allocator does. A repeated release could
   * free another owner's item.
   */
  async #releaseDeleted(values: readonly string[]): Promise<void> {
    const { ranges, clock } = this.#world;
    const items = values.filter((value) => ranges.ownersOf(value).length === 0).map(requestFor);
    const requestId = `deleted${++this.#requests}`;
    const chance = this.#chance.of(requestId);
    if (items.length > 0) await this.#ask({ requestId, operation: 'release', items }, chance, clock.nowMs + 1);
  }

  /**
   * Releases the same items with a second request. If a release without an owner is safe, waits until the first request has
   * begun, because that one then frees only the items that it found at its beginning.
   */
  async #cleanUp(id: string, release: Omit<Request, 'requestId'>, isSafe: boolean, chance: Chance): Promise<void> {
    if (isSafe && !this.#world.has('contention')) return;
    if (isSafe) await this.#world.table.onceBegun(`${id}-release`);
    else if (!chance.once(2)) return;
    await this.#ask({ ...release, requestId: `${id}-cleanup` }, chance);
  }

  /** Looks items up, and records that the request owns those that it still holds. */
  async #lookUp({ id, untilMs }: Pick<Held, 'id' | 'untilMs'>, items: Request['items'], chance: Chance): Promise<void> {
    const found = await this.#ask({ requestId: `${id}-look`, operation: 'lookUp', items }, chance);
    for (const { value, hold } of found?.items ?? []) {
      const sinceMs = this.#world.table.begunAtMs(id);
      if (hold?.owner === id)
        this.#world.ranges.own(String(value), { owner: id, isExclusive: false, untilMs, sinceMs });
    }
  }

  async #wantAtTheEnd({ items, untilMs }: Held, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    await clock.wait(untilMs - clock.nowMs + chance.pick(8_000));
    for (const item of items) void this.#want(item, chance.of(item));
  }

  async #want(value: string, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    const items = [requestFor(value)];
    const tries = this.#world.has('contention') ? 12 : 1;
    for (let attempt = 1; attempt <= tries && this.#world.isFaulty; attempt++) {
      const id = `wanted${++this.#requests}`;
      const untilMs = clock.nowMs + 60_000;
      if (await this.#allocate({ id, items, untilMs, takenUpBy: 'any' }, chance)) return;
      await clock.wait(chance.pick(chance.oneOf([200, 2_000])));
    }
  }

  /** Sends a request with the same id until it gets a final answer. */
  async #ask(
    request: Request,
    chance: Chance,
    untilMs = this.#world.clock.nowMs + RETRIED_MS,
  ): Promise<Answer | undefined> {
    const { requestId, operation, owner } = request;
    const askedAtMs = this.#world.clock.nowMs;
    for (let attempt = 1; attempt <= 8 && this.#world.isFaulty && this.#world.clock.nowMs < untilMs; attempt++) {
      // Another allocator may have given the item to a Service since.
      if (operation === 'release' && owner === undefined && this.#world.cluster.disturbedAtMs >= askedAtMs) break;
      const event = { ...request, cluster: CLUSTER };
      // Some callers give up and ask again while the function still runs.
      const patienceMs = chance.oneOf([3_000, PATIENCE_MS]);
      const answer = await this.#world.functions.ask<Answer>('allocate', event, patienceMs, chance);
      const isAnswer = answer !== undefined && !(answer instanceof Error);
      const shown = isAnswer
        ? `${answer.outcome} ${answer.items.map(({ outcome, value }) => `${value} ${outcome}`)}`
        : answer?.message;
      this.#world.note(`${operation} ${requestId}: ${shown} ${isAnswer ? (answer.error?.code ?? '') : ''}`);
      if (isAnswer && answer.error?.code !== 'InProgress') {
        void this.#checkSame(event, answer, chance);
        return answer;
      }
      await this.#world.clock.wait(chance.pick(chance.oneOf([500, 10_000])));
    }
    return undefined;
  }

  /** Checks that a completed request gets the same answer when it is sent again. */
  async #checkSame(event: object, first: Answer, chance: Chance): Promise<void> {
    if (first.outcome !== 'done' || first.operation === 'lookUp' || this.#world.cluster.isAway || !chance.once(4))
      return;
    const sentAtMs = this.#world.clock.nowMs;
    const again = await this.#world.functions.invoke<Answer>('allocate', event);
    if (again === undefined || again instanceof Error || this.#world.cluster.disturbedAtMs >= sentAtMs) return;
    const [told, before] = [again, first].map(({ outcome, items }) => JSON.stringify([outcome, items]));
    if (told === before) return;
    this.#world.violate('toldTwice', `${first.requestId} was told ${before}, and when it asked again: ${told}`);
  }

  /** Checks that a refused request holds nothing. An invocation that was cut off, or another delivery, may still hold items. */
  async #checkNothingLeft(id: string): Promise<void> {
    const { clock } = this.#world;
    const refusedAtMs = clock.nowMs;
    await clock.wait(PATIENCE_MS + 5_000);
    // If the request has no record yet, another delivery of it may be carried out later.
    const begunAtMs = this.#world.table.begunAtMs(id);
    if (this.#world.functions.cutOff.has(id) || begunAtMs === 0 || begunAtMs > refusedAtMs || this.#isDisturbed(id))
      return;
    for (const item of this.#heldBy(id)) {
      this.#world.violate('toldRefused', `${id} was told that it is refused, and holds ${item}`);
    }
  }

  /** Checks that a request holds only the items of its answer. Waits first, because another invocation of it may be running. */
  async #checkOnlyThese(id: string, items: readonly string[]): Promise<void> {
    await this.#world.clock.wait(PATIENCE_MS + 5_000);
    if (this.#world.functions.cutOff.has(id) || this.#isDisturbed(id)) return;
    for (const item of this.#heldBy(id)) {
      if (!items.includes(item)) this.#world.violate('toldAllocated', `${id} holds ${item}, and was told ${items}`);
    }
  }

  #isDisturbed(id: string): boolean {
    return this.#world.cluster.disturbedAtMs > this.#world.table.begunAtMs(id) - DISTURBED_MS;
  }

  #heldBy(id: string): string[] {
    const isOwn = ({ requestId, untilMs }: StoredHold) => requestId === id && untilMs >= this.#world.clock.nowMs;
    return RANGE_KEYS.flatMap((key) =>
      [...this.#world.table.stored(key).holds].flatMap(([item, hold]) => (isOwn(hold) ? item : [])),
    );
  }

  #wished(chance: Chance): Request['items'] {
    const ranges = (['serviceips', 'secondaryserviceips', 'servicenodeports'] as const).filter(
      (range) =>
        (range !== 'secondaryserviceips' || this.#world.has('dualStack')) &&
        (range !== 'servicenodeports' || this.#world.has('nodePorts')),
    );
    const next = ranges.filter(() => chance.once(2)).map((range) => ({ range, next: true }) as const);
    const items = next.length === 0 ? [{ range: 'serviceips', next: true, count: 2 } as const] : next;
    if (!chance.once(4)) return [...items];
    // If the item belongs to another owner, the whole request is rolled back.
    const isPort = ranges.includes('servicenodeports') && chance.once(2);
    const last = isPort
      ? ({ range: 'servicenodeports', value: 30_000 + chance.pick(4) } as const)
      : ({ range: 'serviceips', value: `10.0.0.${chance.between(1, 14)}` } as const);
    return [...items, last];
  }
}

interface Wanted extends Pick<Held, 'id' | 'untilMs' | 'takenUpBy'> {
  readonly items: Request['items'];
}

function requestFor(item: string): Request['items'][number] {
  const range = keyOf(item).replace('ranges/', '') as Request['items'][number]['range'];
  return { range, value: range === 'servicenodeports' ? Number(item) : item };
}
