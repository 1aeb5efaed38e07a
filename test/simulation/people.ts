import type { PatchOperation } from '../../lib/admission/response.ts';
import { HOLD_OWNER_LABEL } from '../../lib/cluster/kubernetes-objects.ts';
import { aReview } from '../support/admission-review.ts';
import type { Chance } from './clock.ts';
import { CLUSTER } from './cluster.ts';
import { itemsOf, type ServiceSpec, type StoredService } from './control-plane.ts';
import { TOKEN } from './functions.ts';
import { GREEDY } from './range-truth.ts';
import { INTERVAL_MS } from './settings.ts';
import { RANGE_KEYS, sizeOf } from './stored-items.ts';
import type { World } from './world.ts';

const NAMESPACE = 'a';
const AT_ONCE = 6;
const TYPES: readonly [Type, ...Type[]] = [
  { type: 'ClusterIP' },
  { type: 'NodePort' },
  { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
];
export const BUSY_MS = 1_500;
/** The time for which a Service that another allocator created is kept. Before it ends, the table allocates again. */
const KEPT_MS = 70_000;
const SHARED = 3;
const MOST_PORTS = 3;
/** The largest number of items of one range in a Service: its ports, and the one of the health check. */
const MOST_ITEMS = MOST_PORTS + 1;
/**
 * The number of Service names. With this number, a name is used again after the items of its deleted Service got two strikes, and
 * before the third one.
 */
const FEW = 24;
const FEW_EVERY_MS = 2_000;

type Type = Pick<ServiceSpec, 'type' | 'externalTrafficPolicy'>;

export interface Wish {
  readonly spec: ServiceSpec;
  readonly holdOwner?: string;
}

/** People who create, change and delete Services through an API server with the webhook. */
export class People {
  readonly #world: World;
  readonly #chance: Chance;
  /** The longest time of each part of the life of a Service. */
  readonly #longestMs: number;
  #services = 0;
  /** Called with the items of a deleted Service whose name is not used again. */
  onDeleted: (items: readonly string[]) => void = () => {};

  constructor(world: World) {
    this.#world = world;
    this.#chance = world.chance.of('people');
    this.#longestMs = world.has('busy') ? 5_000 : 40_000;
  }

  /** Creates Services that exist before the functions run. */
  placeFirst(): void {
    const addresses = Array.from({ length: 4 }, () => `10.0.0.${this.#chance.between(2, 14)}`);
    for (const address of new Set(addresses)) this.place(`first-${address}`, withAddress(address));
  }

  /**
   * Creates Services with addresses that another allocator has chosen and the table does not know. These addresses have no owner
   * and no hold.
   */
  placeUnrecorded(chance: Chance): void {
    const { holds } = this.#world.table.stored('ranges/serviceips');
    for (let left = chance.oneOf([1, 3, 6]); left > 0; left--) {
      const free = Array.from({ length: 12 }, (_, index) => `10.0.0.${index + 2}`).filter(
        (address) => this.#world.ranges.ownersOf(address).length === 0 && !holds.has(address),
      );
      const address = free[chance.pick(free.length)];
      if (address === undefined) return;
      const service = this.place(`other-${++this.#services}`, withAddress(address));
      void this.#world.clock.wait(KEPT_MS).then(() => this.live(service, chance));
    }
  }

  /** Creates a Service every few seconds. */
  async work(): Promise<void> {
    const { clock } = this.#world;
    const busyMs = this.#world.has('fewNames') ? FEW_EVERY_MS : BUSY_MS;
    const isBusy = this.#world.has('busy') || this.#world.has('fewNames');
    const everyMs = isBusy ? busyMs : this.#chance.oneOf([4_000, 15_000, 40_000]);
    while (this.#world.isFaulty) {
      await clock.wait(this.#chance.pick(2 * everyMs) * this.#world.cluster.slowness);
      const isBurst = this.#world.has('contention') && this.#chance.once(6);
      const isOneName = this.#chance.once(3);
      for (let left = isBurst ? AT_ONCE : 1; left > 0; left--) {
        void this.#life(isBurst && isOneName ? 'svc-0' : this.#nextName());
      }
    }
  }

  #nextName(): string {
    const inTimes = this.#world.has('fewNames') ? 1 : 3;
    return `svc-${this.#chance.once(inTimes) ? this.#chance.pick(this.#sharedNames) : 10 + ++this.#services}`;
  }

  get #sharedNames(): number {
    return this.#world.has('fewNames') ? FEW : SHARED;
  }

  async #life(name: string): Promise<void> {
    const chance = this.#chance.of(`${name} at ${this.#world.clock.nowMs}`);
    const service = await this.create(name, this.#wish(chance), chance);
    if (service !== undefined) await this.live(service, chance);
  }

  /** Uses a Service for a while, changes it, and deletes it. */
  async live(service: StoredService, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    await clock.wait(chance.pick(this.#longestMs));
    if (chance.once(3)) await this.#change(service, chance);
    await clock.wait(chance.pick(this.#longestMs));
    // Services that exist at the end of the faults are not deleted.
    if (this.#world.isFaulty) await this.#delete(service.metadata.name, chance);
  }

  async create(name: string, wish: Wish, chance: Chance): Promise<StoredService | undefined> {
    const { clock } = this.#world;
    if (chance.once(8)) await this.#review({ name, chance, isDry: true, ...wish });
    for (let attempt = 1; attempt <= 4 && this.#world.isFaulty; attempt++) {
      const answered = await this.#review({ name, chance, ...wish, isFirst: attempt === 1 && this.#isOwnName(name) });
      if (answered === 'refused' && chance.once(2)) return undefined;
      if (answered !== 'refused') for (const item of itemsOf(wish)) this.#world.ranges.claimedByService(item);
      if (answered !== undefined && answered !== 'refused') return this.#store(name, answered, wish, chance);
      // The API server got no answer in time, so the person tries again.
      await clock.wait(chance.pick(chance.oneOf([300, 6_000])));
    }
    return undefined;
  }

  /** Checks that the webhook allows a Service after all faults, unless a range is full. */
  async createLast(): Promise<void> {
    const chance = this.#chance.of('the last Service');
    const wish = this.#wish(chance);
    const isAllowed = async () => typeof (await this.#review({ name: 'last', chance, ...wish })) === 'object';
    if (await isAllowed()) return;
    // If the first pass failed during the faults, the webhook refuses until the next one.
    await this.#world.clock.wait(2 * INTERVAL_MS);
    const ranges = RANGE_KEYS.map((key) => this.#world.table.stored(key));
    const isFull = ranges.some(({ range, taken }) => range !== '' && sizeOf(range) - taken.size < MOST_ITEMS);
    if (!isFull && !(await isAllowed())) this.#world.violate('refused', 'the last Service is refused');
  }

  /** Requests addresses for a Service that the quota of its namespace then refuses. */
  async createRefused(name: string, chance: Chance): Promise<void> {
    await this.#world.clock.wait(chance.pick(10_000));
    await this.#review({ name, chance, namespace: GREEDY, ...this.#wish(chance) });
  }

  /** Stores a new Service as the API server does after all checks that may refuse it. */
  place(name: string, spec: ServiceSpec, holdOwner?: string): StoredService {
    const labels = holdOwner === undefined ? {} : { labels: { [HOLD_OWNER_LABEL]: holdOwner } };
    const metadata = { namespace: NAMESPACE, name, ...labels };
    return this.#placed({ apiVersion: 'v1', kind: 'Service', metadata, spec });
  }

  /** Stores a Service. Its creation time is the time of its last change, at which it got its addresses and ports. */
  #placed(service: StoredService): StoredService {
    const { clock, servers } = this.#world;
    const metadata = { ...service.metadata, creationTimestamp: new Date(clock.nowMs).toISOString() };
    const stored = servers.plane.place('services', { ...service, metadata }) as StoredService;
    for (const item of itemsOf(stored)) this.#own(item, service.metadata.name);
    return stored;
  }

  async #store(name: string, spec: ServiceSpec, wish: Wish, chance: Chance): Promise<StoredService | undefined> {
    const { clock } = this.#world;
    if (this.#isRefusedByOthers(name, itemsOf({ spec }))) return undefined;
    for (const item of itemsOf({ spec })) this.#own(item, name);
    await clock.wait(chance.pick(chance.oneOf([50, 3_000, 15_000])));
    const existing = this.find(name);
    if (existing === undefined && !chance.once(this.#world.has('fewNames') ? 2 : 5))
      return this.place(name, spec, wish.holdOwner);
    this.#world.note(`${name} is refused by its API server`);
    this.#disown(name, itemsOf({ spec }));
    return undefined;
  }

  /** Returns whether the API server's own allocator refuses an item of another owner. It allocates while the webhook allows everything. */
  #isRefusedByOthers(name: string, items: readonly string[]): boolean {
    const { ranges, cluster } = this.#world;
    const isOthers = (item: string) => ranges.ownersOf(item).some(({ owner }) => owner !== `service ${name}`);
    return cluster.inChargeSinceMs === undefined && items.some(isOthers);
  }

  async #change(service: StoredService, chance: Chance): Promise<void> {
    const { name } = service.metadata;
    const { type, ports, externalTrafficPolicy: _, healthCheckNodePort: __, ...rest } = service.spec;
    const isStack = new Set(rest.ipFamilies).size === rest.clusterIPs?.length;
    const isGrowing = type === 'ClusterIP';
    if (!this.#world.has('nodePorts')) return;
    const spec: ServiceSpec = isGrowing
      ? { ...rest, type: 'NodePort', ports: isStack && chance.once(2) ? named(ports, 30_000 + chance.pick(4)) : ports }
      : { ...rest, type: 'ClusterIP', ports: ports.map(({ nodePort: _, ...port }) => port) };
    const answered = isGrowing ? await this.#review({ name, spec, oldSpec: service.spec, chance }) : spec;
    if (answered === 'refused') return;
    for (const { nodePort } of spec.ports)
      if (nodePort !== undefined) this.#world.ranges.claimedByService(String(nodePort));
    if (answered === undefined) return;
    const items = itemsOf({ spec: answered });
    if (this.#isRefusedByOthers(name, items)) return;
    for (const item of items) this.#own(item, name);
    await this.#world.clock.wait(chance.pick(3_000));
    const now = this.find(name);
    const isSame = now !== undefined && now.metadata.resourceVersion === service.metadata.resourceVersion;
    // Another Service of the same name may have released the items meanwhile.
    if (isSame) this.#placed({ ...now, spec: answered });
    this.#disown(name, [...items, ...itemsOf(service)]);
  }

  async #delete(name: string, chance: Chance): Promise<void> {
    const { clock, servers } = this.#world;
    if (chance.once(2)) {
      // A finalizer keeps the Service.
      const service = this.find(name);
      if (service === undefined) return;
      const metadata = { ...service.metadata, deletionTimestamp: new Date(clock.nowMs).toISOString() };
      servers.plane.place('services', { ...service, metadata });
      await clock.wait(chance.pick(this.#longestMs));
    }
    const service = this.find(name);
    if (service === undefined) return;
    servers.plane.remove('services', NAMESPACE, name);
    this.#disown(name, itemsOf(service));
    // Another Service of the same name with the same address may be about to be created.
    if (!this.#isSharedName(name)) this.onDeleted(itemsOf(service));
  }

  /** Checks that a review that was refused has allocated nothing. The API server may have sent it twice. */
  #checkNothingLeft(name: string, event: object, askedAtMs: number): void {
    const { repeated, mayLeakAtMs } = this.#world.functions;
    if (repeated.has(event) || mayLeakAtMs >= askedAtMs) return;
    const left = RANGE_KEYS.filter((key) => this.#world.table.stored(key).unclaimedOf.has(`${NAMESPACE}/${name}`));
    if (left.length > 0) this.#world.violate('toldRefused', `${name} was refused, and has items in ${left.join(', ')}`);
  }

  /** Returns whether only one Service has this name. */
  #isOwnName(name: string): boolean {
    return name.startsWith('svc-') && !this.#isSharedName(name);
  }

  #isSharedName(name: string): boolean {
    return Array.from({ length: this.#sharedNames }, (_, index) => `svc-${index}`).includes(name);
  }

  find(name: string): StoredService | undefined {
    return this.#world.servers.plane.find('services', NAMESPACE, name);
  }

  #own(item: string, name: string): void {
    this.#world.ranges.own(item, { owner: `service ${name}`, isExclusive: true });
  }

  /** Records that the Service of that name no longer owns the items, except those that the stored Service still has. */
  #disown(name: string, items: readonly string[]): void {
    const service = this.find(name);
    const kept = service === undefined ? [] : itemsOf(service);
    for (const item of items) if (!kept.includes(item)) this.#world.ranges.end(item, `service ${name}`);
  }

  #wish(chance: Chance): Wish {
    const isDual = this.#world.has('dualStack') && chance.once(2);
    return {
      spec: {
        ...(this.#world.has('nodePorts') ? chance.oneOf(TYPES) : TYPES[0]),
        ...(isDual && { ipFamilyPolicy: 'RequireDualStack' }),
        // A Service with several ports tests reviews that allocate some of the node ports, fail, and release them again.
        ports: Array.from({ length: chance.oneOf([1, 1, MOST_PORTS]) }, (_, index) => ({
          name: `port-${index}`,
          port: 80 + index,
          protocol: 'TCP',
        })),
      },
    };
  }

  /** Sends one review. The API server may send it again while the first request is under way. */
  async #review(request: ReviewRequest): Promise<ServiceSpec | 'refused' | undefined> {
    const { name, namespace = NAMESPACE, spec, oldSpec, holdOwner, chance, isDry = false, isFirst = false } = request;
    const timeoutS = chance.oneOf([3, 10]);
    const labels = holdOwner === undefined ? {} : { labels: { [HOLD_OWNER_LABEL]: holdOwner } };
    const review = aReview({
      name,
      namespace,
      spec: { ...spec },
      dryRun: isDry,
      ...labels,
      ...(oldSpec && { oldSpec: { ...oldSpec } }),
    });
    const event = {
      rawPath: `/${CLUSTER}`,
      rawQueryString: `timeout=${timeoutS}s`,
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify(review),
      requestContext: { http: { method: 'POST' }, timeEpoch: this.#world.clock.nowMs },
    };
    const askedAtMs = this.#world.clock.nowMs;
    const answer = await this.#world.functions.ask<Reply>('admission', event, timeoutS * 1000, chance);
    if (answer === undefined || answer instanceof Error || answer.statusCode !== 200) return undefined;
    const { response } = JSON.parse(answer.body) as Answered;
    this.#world.note(`review of ${name}: ${response.allowed ? 'allowed' : response.status?.message}`);
    const isUnknown = response.status?.code === 503;
    if (!response.allowed && isFirst && !isUnknown) this.#checkNothingLeft(name, event, askedAtMs);
    if (!response.allowed) return 'refused';
    const patch = JSON.parse(Buffer.from(response.patch ?? 'W10=', 'base64').toString()) as PatchOperation[];
    return patched(spec, patch);
  }
}

interface ReviewRequest extends Wish {
  readonly name: string;
  readonly namespace?: string;
  readonly oldSpec?: ServiceSpec;
  readonly chance: Chance;
  readonly isDry?: boolean;
  /** No other review of a Service of this name is or was under way. */
  readonly isFirst?: boolean;
}

interface Reply {
  readonly body: string;
  readonly statusCode: number;
}

interface Answered {
  readonly response: {
    readonly allowed: boolean;
    readonly patch?: string;
    /** The code 503: the function does not know whether it has allocated something. */
    readonly status?: { readonly message: string; readonly code: number };
  };
}

export function withAddress(...clusterIPs: string[]): ServiceSpec {
  const ipFamilies = clusterIPs.map((address) => (address.includes(':') ? 'IPv6' : 'IPv4'));
  return {
    type: 'ClusterIP',
    clusterIP: clusterIPs[0] ?? '',
    clusterIPs,
    ipFamilies,
    ports: [{ port: 80, protocol: 'TCP' }],
  };
}

/** Returns the ports, of which the first one names its node port. */
function named([first, ...others]: ServiceSpec['ports'], nodePort: number): ServiceSpec['ports'] {
  return first === undefined ? [] : [{ ...first, nodePort }, ...others];
}

function patched(spec: ServiceSpec, patch: readonly PatchOperation[]): ServiceSpec {
  const result = { spec: structuredClone(spec) };
  for (const { path, value } of patch) {
    const names = path.split('/').slice(1);
    const last = names.pop() ?? '';
    const target = names.reduce<Record<string, unknown>>(
      (each, name) => each[name] as Record<string, unknown>,
      result as never,
    );
    target[last] = value;
  }
  const { clusterIPs = [] } = result.spec;
  return { ...result.spec, ...(clusterIPs.length > 0 && { ipFamilies: withAddress(...clusterIPs).ipFamilies ?? [] }) };
}
