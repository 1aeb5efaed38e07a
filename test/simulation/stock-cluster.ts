import { ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';
import type { ObjectWrite } from '../support/object-server.ts';
import { type IPAddressObject, stockCidr, stockRecord } from '../support/stock-objects.ts';
import type { Chance } from './clock.ts';
import { DENIED, type StoredService } from './control-plane.ts';
import type { Call } from './process.ts';
import {
  type Admission,
  addressesOf,
  BY_API_SERVER,
  isManaged,
  parentOf,
  StockApiServer,
  withAddresses,
} from './stock-api-server.ts';
import { hasItem } from './stored-items.ts';
import type { Violation, World } from './world.ts';

const NAMESPACE = 'a';
const OUT_OF_RANGE = '172.20.0.';
const KEPT = ['10.0.0.2', '10.0.0.3', '10.0.0.4'] as const;
/** The ServiceCIDRs that come and go. The last one contains that of the cluster. */
const CIDRS = { second: ['10.0.1.0/28'], third: ['10.0.2.0/28'], wider: ['10.0.0.0/26'] } as const;
const SKEWS_MS = [-180_000, -70_000, 70_000] as const;
/** The time after the end of a hold in which a pass must end it. */
const HOLD_ENDS_MS = 75_000;
/** The age of the caches of API servers. Their own repair waits for 5 s before it trusts a cache. */
const CACHE_LAG_MS = 4_000;
const HOLD_MARGIN_MS = 1_000;
const PORTS = [{ port: 80, protocol: 'TCP' }] as const;

/**
 * A cluster whose API servers allocate by IPAddresses: its users, the clients that damage its objects, and the judge of what
 * the functions write there.
 */
export class StockCluster {
  readonly api: StockApiServer;
  /** The error of the API server's clock. */
  readonly skewMs: number;
  readonly #world: World;
  readonly #chance: Chance;
  /** The addresses whose IPAddress another client damaged, so that API servers may allocate them twice. */
  readonly #damaged = new Set<string>();
  #names = 0;

  constructor(world: World) {
    this.#world = world;
    this.#chance = world.chance.of('stock cluster');
    const lagMs = world.has('laggingCaches') ? CACHE_LAG_MS : 0;
    this.api = new StockApiServer(world.servers.plane, this.#chance.of('API server'), lagMs);
    this.skewMs = world.has('skewedApiServers') ? this.#chance.oneOf(SKEWS_MS) : 0;
    world.servers.plane.nowMs = () => world.clock.nowMs + this.skewMs;
  }

  get #plane() {
    return this.#world.servers.plane;
  }

  begin(): void {
    this.#placeCidr('kubernetes', this.#world.cluster.spec.serviceClusterIPRanges);
    if (this.#chance.once(2)) this.#placeCidr('second', CIDRS.second);
    this.#plane.place('ipaddresses', stockRecord('10.0.0.1', 'default/kubernetes'), BY_API_SERVER);
    if (this.#world.has('outOfRange')) {
      for (let index = 0; index < 12; index++) this.#place(`a-${index}`, `${OUT_OF_RANGE}${index}`);
    }
    for (const address of KEPT) {
      this.#place(`kept-${address}`, address);
      this.#plane.place('ipaddresses', stockRecord(address, `${NAMESPACE}/kept-${address}`), BY_API_SERVER);
    }
  }

  #placeCidr(name: string, cidrs: readonly string[], deletionTimestamp?: string): void {
    const metadata = { name, ...(deletionTimestamp && { deletionTimestamp }) };
    this.#plane.place('servicecidrs', { ...stockCidr(...cidrs), metadata }, BY_API_SERVER);
  }

  /** Creates a ServiceCIDR, or deletes one, which stays until no IPAddress needs it, as the controller manager ensures. */
  async changeCidrs(chance: Chance): Promise<void> {
    const { clock } = this.#world;
    const name = chance.oneOf(['second', 'third', 'wider'] as const);
    const cidrs: readonly string[] = CIDRS[name];
    if (this.#plane.find('servicecidrs', '', name) === undefined) return this.#placeCidr(name, cidrs);
    this.#placeCidr(name, cidrs, new Date(clock.nowMs).toISOString());
    const isNeeded = ({ metadata }: IPAddressObject) =>
      this.api
        .cidrs()
        .filter((cidr) => hasItem(cidr, metadata.name))
        .every((cidr) => cidrs.includes(cidr));
    do await clock.wait(10_000);
    while (this.#world.isFaulty && this.api.addresses().some(isNeeded));
    if (!this.api.addresses().some(isNeeded)) this.#plane.remove('servicecidrs', '', name, BY_API_SERVER);
  }

  /** Runs the own repair of the API servers from time to time. */
  async repair(): Promise<void> {
    while (this.#world.has('ownRepair') && !this.#world.hasEnded) {
      await this.#world.clock.wait(Math.max(1, this.#chance.of(`repair at ${this.#world.clock.nowMs}`).pick(20_000)));
      this.api.repair();
    }
  }

  async work(): Promise<void> {
    const everyMs = this.#chance.oneOf([1_500, 5_000]);
    while (this.#world.isFaulty) {
      await this.#world.clock.wait(this.#chance.pick(2 * everyMs));
      const name = `svc-${this.#chance.once(5) ? this.#chance.pick(3) : 10 + ++this.#names}`;
      void this.#life(name, this.#chance.of(`${name} at ${this.#world.clock.nowMs}`));
    }
  }

  async #life(name: string, chance: Chance): Promise<void> {
    const { clock } = this.#world;
    const finalizers = chance.once(2) ? { finalizers: ['example.com/waits'] } : {};
    const metadata = { namespace: NAMESPACE, name, ...finalizers };
    const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { type: 'ClusterIP' as const, ports: PORTS } };
    const wanted = chance.oneOf([['IPv4'], ['IPv4'], ['IPv4', 'IPv6'], [`10.0.0.${chance.between(2, 14)}`]]);
    if (chance.once(8)) await this.api.create(service, wanted, this.#admission(chance), true);
    const created = await this.api.create(service, wanted, this.#admission(chance));
    this.#world.note(`${name}: ${created.outcome === 'stored' ? addressesOf(created.service) : created.message}`);
    if (created.outcome !== 'stored') return;
    for (let left = chance.pick(3); left > 0; left--) {
      await clock.wait(chance.pick(chance.oneOf([2_000, 20_000])));
      await this.#change(name, chance);
    }
    await clock.wait(chance.pick(40_000));
    // Services that exist at the end of the faults are not deleted.
    if (!this.#world.isFaulty) return;
    const released = () => clock.wait(chance.pick(100));
    await this.api.remove(NAMESPACE, name, released);
    await clock.wait(chance.pick(20_000));
    await this.api.finalize(NAMESPACE, name, released);
  }

  /** Gives a Service its second family, takes it away, or makes it an ExternalName and back. */
  async #change(name: string, chance: Chance): Promise<void> {
    const service = this.find(name);
    if (service === undefined) return;
    const addresses = addressesOf(service);
    const admit = this.#admission(chance);
    const released = () => this.#world.clock.wait(chance.pick(100));
    const isLess = addresses.length === 2 || (addresses.length === 1 && chance.once(3));
    const { outcome } = isLess
      ? await this.api.downgrade(service, chance.pick(addresses.length), admit, released)
      : await this.api.upgrade(service, [addresses.length === 0 ? 'IPv4' : 'IPv6'], admit);
    this.#world.note(`${name} gets ${isLess ? 'fewer addresses' : 'another address'}: ${outcome}`);
  }

  #admission(chance: Chance): Admission {
    return async () => {
      const longestMs = this.#world.has('slowAdmission') ? 30_000 : chance.oneOf([50, 3_000]);
      await this.#world.clock.wait(chance.pick(longestMs));
      if (this.#world.isFaulty && chance.once(12)) return 'died';
      return chance.once(8) ? 'refused' : 'allowed';
    };
  }

  find(name: string): StoredService | undefined {
    return this.#plane.find('services', NAMESPACE, name);
  }

  /** Stores a Service that is never deleted, without an allocation, as a restore of etcd does. */
  #place(name: string, address: string): void {
    const spec = withAddresses({ type: 'ClusterIP', ports: PORTS }, [address]);
    const annotations = this.#world.has('oddServices') && this.#chance.once(2) ? { annotations: DENIED } : {};
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: NAMESPACE, name, ...annotations },
      spec,
    };
    this.#plane.place('services', service, BY_API_SERVER);
  }

  /** Deletes or changes the IPAddress of a Service as another client. The API server may refuse to let a pass create it again. */
  damage(chance: Chance): void {
    const records = this.api.addresses().filter((record) => isManaged(record) && this.#owner(record) !== undefined);
    const record = records[chance.pick(records.length)];
    if (record === undefined) return;
    const { name } = record.metadata;
    this.#damaged.add(name);
    const isRefused = this.#world.has('refusedRecords') && chance.once(2);
    if (isRefused) this.#plane.refused.set(name, chance.oneOf([403, 422]));
    this.#world.note(`another client damages IPAddress ${name}`);
    const missing = stockRecord(name, 'a/missing');
    const unlabelled = { ...record, metadata: { ...record.metadata, labels: {} } };
    const damaged = isRefused ? missing : chance.oneOf([unlabelled, missing, undefined]);
    if (damaged === undefined) this.#plane.remove('ipaddresses', '', name);
    else this.#plane.place('ipaddresses', damaged);
  }

  /** Holds an address by an IPAddress, as kbctl does. */
  hold(chance: Chance): void {
    const name = `10.0.0.${chance.between(15, 30)}`;
    if (this.#plane.find('ipaddresses', '', name) !== undefined) return;
    const untilMs = this.#world.clock.nowMs + chance.between(5_000, 90_000);
    const hold = { owner: 'ci', takenUpBy: 'any', untilMs, requestId: `r${chance.pick(1_000)}` } as const;
    this.#plane.place('ipaddresses', ipAddressOfHold(name, hold));
  }

  /** Checks a write of an object. `call` is the call of a function that made it. */
  check({ kind, name, before }: ObjectWrite, call: Call | undefined): void {
    if (kind === 'services') this.#checkOwners(this.#plane.find<StoredService>('services', NAMESPACE, name));
    // The own repair of an API server may delete an IPAddress of a request that takes longer than 5 s.
    if (kind === 'ipaddresses' && call === undefined && this.api.underWay.has(name)) this.#damaged.add(name);
    if (kind !== 'ipaddresses' || call === undefined) return;
    const { by, begunAtMs } = call;
    const record = before as IPAddressObject | undefined;
    this.#world.note(`${by.name} writes IPAddress ${name}`);
    this.#world.cluster.checkMayWrite(by, begunAtMs, `IPAddress ${name}`);
    if (this.#world.cluster.isPausedFor(call))
      this.#world.violate('paused', `${by.name} wrote IPAddress ${name} in a pause`);
    const untilMs = record && endOf(record);
    if (untilMs === undefined && !this.#world.cluster.spec.repair.ipAddresses) {
      this.#world.violate('unasked', `${by.name} wrote IPAddress ${name}, and repair.ipAddresses is off`);
    }
    if (record === undefined || this.#plane.find('ipaddresses', '', name) !== undefined) return;
    if (untilMs !== undefined && untilMs + HOLD_MARGIN_MS > this.#world.clock.nowMs) {
      this.#world.violate('freed', `${by.name} deleted IPAddress ${name}, whose hold has not ended`);
    }
    const needed = this.#needOf(record);
    if (needed !== undefined) this.#world.violate('freed', `${by.name} deleted IPAddress ${name}, ${needed}`);
  }

  /** Returns why an IPAddress must not be deleted. */
  #needOf(record: IPAddressObject): string | undefined {
    const { name } = record.metadata;
    const parent = parentOf(record);
    if (this.api.underWay.get(name) === parent) return `which ${parent} is about to get`;
    if (isManaged(record) && this.#owner(record) !== undefined) return `which ${parent} has`;
    const hasService = this.#plane.services().some((service) => addressesOf(service).includes(name));
    return hasService && this.#plane.refused.has(name)
      ? 'which a Service has, and a policy refuses another one'
      : undefined;
  }

  #checkOwners(service: StoredService | undefined): void {
    for (const address of service === undefined ? [] : addressesOf(service)) {
      const owners = this.#plane.services().filter((each) => addressesOf(each).includes(address));
      if (owners.length < 2 || this.#damaged.has(address)) continue;
      this.#world.violate(
        'twoOwners',
        `${address} belongs to ${owners.map(({ metadata }) => metadata.name).join(', ')}`,
      );
    }
  }

  /** Returns the Service that an IPAddress references, if it has the address. */
  #owner(record: IPAddressObject): StoredService | undefined {
    const [namespace = '', name = ''] = parentOf(record).split('/');
    const service = this.#plane.find<StoredService>('services', namespace, name);
    return service && addressesOf(service).includes(record.metadata.name) ? service : undefined;
  }

  /** Returns what is wrong at the end. */
  wrong(): Violation[] {
    const { nowMs } = this.#world.clock;
    const held = this.api.addresses().filter((record) => (endOf(record) ?? nowMs) < nowMs - HOLD_ENDS_MS);
    const late = held.map(({ metadata }) => ({
      kind: 'leaked',
      message: `the hold of ${metadata.name} has not ended`,
    }));
    return this.#world.cluster.spec.repair.ipAddresses ? [...late, ...this.#leaked(), ...this.#unrecorded()] : late;
  }

  #leaked(): Violation[] {
    return this.api
      .addresses()
      .filter((record) => isManaged(record) && this.#owner(record) === undefined)
      .filter(({ metadata }) => !this.#mayStay(metadata.name))
      .map(({ metadata }) => ({ kind: 'leaked', message: `IPAddress ${metadata.name} has no Service at the end` }));
  }

  /** Returns whether no pass can correct the IPAddress: a policy refuses it, or the Service cannot be read alone. */
  #mayStay(address: string): boolean {
    const owners = this.#plane.services().filter((service) => addressesOf(service).includes(address));
    return this.#plane.refused.has(address) || owners.some(({ metadata }) => metadata.annotations === DENIED);
  }

  #unrecorded(): Violation[] {
    const cidrs = this.api.cidrs();
    const isRecorded = (address: string) => {
      const record = this.#plane.find<IPAddressObject>('ipaddresses', '', address);
      return record !== undefined && isManaged(record) && this.#owner(record) !== undefined;
    };
    const claimed = this.#plane
      .services()
      .flatMap(addressesOf)
      .filter((each) => cidrs.some((cidr) => hasItem(cidr, each)));
    return [...new Set(claimed)]
      .filter((address) => !isRecorded(address) && !this.#mayStay(address))
      .map((address) => ({ kind: 'unrecorded', message: `${address} has a Service and no IPAddress at the end` }));
  }
}

/** Returns the end of the hold of an IPAddress; `undefined` if it holds nothing. */
function endOf({ metadata: { annotations = {} } }: IPAddressObject): number | undefined {
  const until = annotations['kube-bootstrap-controller/hold-until'];
  return until === undefined ? undefined : Date.parse(until);
}

export async function damageRecord({ stock }: World, chance: Chance): Promise<void> {
  stock?.damage(chance);
}

export async function changeCidrs({ stock }: World, chance: Chance): Promise<void> {
  // A deletion may wait until the faults end, so the incident does not.
  void stock?.changeCidrs(chance);
}

export async function holdAddress({ stock }: World, chance: Chance): Promise<void> {
  stock?.hold(chance);
}
