import { ADDRESS_MANAGED_BY_LABEL, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type IPAddressObject, MANAGED, stockRecord } from '../support/stock-objects.ts';
import type { Chance } from './clock.ts';
import { type ControlPlane, isIPv6, type ServiceSpec, type StoredService } from './control-plane.ts';
import { hasItem, itemAt, sizeOf } from './stored-items.ts';

export const BY_API_SERVER = 'kube-apiserver';
const TRIES = 12;

interface ServiceCidrObject extends KubernetesObject {
  readonly spec: { readonly cidrs: readonly string[] };
}

/** The ages at which the own repair of an API server deletes an IPAddress: without a Service, and of a Service that does not list it. */
const LEAKED_AFTER_MS = 60_000;
const WRONG_AFTER_MS = 5_000;

/** What happens to a request between its allocation and its write: `died` is the end of the API server. */
export type Admission = () => Promise<'allowed' | 'refused' | 'died'>;

export type Stored =
  | { readonly outcome: 'stored'; readonly service: StoredService }
  | { readonly outcome: 'refused'; readonly message: string };

/**
 * The requests for Services of kube-apiserver 1.33 and later: it creates the IPAddresses, runs the validating admission, stores the
 * Service, and, if anything fails, deletes the IPAddresses by name. It passes the contract in test/contract/stock-allocation.ts.
 */
export class StockApiServer {
  readonly #plane: ControlPlane;
  readonly #pick: Chance['pick'];
  /** The addresses of requests that run, with the Service. */
  readonly underWay = new Map<string, string>();

  readonly #lagMs: number;
  #cache: { readonly readAtMs: number; readonly openCidrs: readonly string[]; readonly services: StoredService[] };

  /** @param lagMs the age of the ServiceCIDRs and Services that the API server has in its caches */
  constructor(plane: ControlPlane, { pick }: Chance, lagMs = 0) {
    this.#plane = plane;
    this.#pick = pick;
    this.#lagMs = lagMs;
    this.#cache = this.#read();
  }

  get #cached() {
    if (this.#nowMs() - this.#cache.readAtMs >= this.#lagMs) this.#cache = this.#read();
    return this.#cache;
  }

  #read() {
    const openCidrs = this.#cidrs(({ metadata }) => metadata.deletionTimestamp === undefined);
    return { readAtMs: this.#nowMs(), openCidrs, services: this.#plane.services() };
  }

  #nowMs(): number {
    return this.#plane.nowMs?.() ?? 0;
  }

  addresses(): IPAddressObject[] {
    return this.#plane.all('ipaddresses') as KubernetesObject[] as IPAddressObject[];
  }

  cidrs(): string[] {
    return this.#cidrs(() => true);
  }

  /** Returns the ranges of some ServiceCIDRs. Nothing is allocated from one that is being deleted. */
  #cidrs(isWanted: (object: ServiceCidrObject) => boolean): string[] {
    const objects = this.#plane.all('servicecidrs') as KubernetesObject[] as ServiceCidrObject[];
    return objects.filter(isWanted).flatMap(({ spec }) => spec.cidrs);
  }

  /** @param wanted for each cluster IP, the address or the name of a family */
  async create(service: StoredService, wanted: readonly string[], admit: Admission, isDryRun = false): Promise<Stored> {
    const { namespace = '', name } = service.metadata;
    return this.#request(`${namespace}/${name}`, isDryRun ? [] : wanted, admit, (clusterIPs) => {
      if (this.#plane.find('services', namespace, name) !== undefined) return undefined;
      const allocated = { ...service, spec: withAddresses(service.spec, clusterIPs) };
      return isDryRun ? allocated : this.#store(allocated);
    });
  }

  /** Adds the second family to a Service, or gives addresses to one that had none. */
  async upgrade(before: StoredService, wanted: readonly string[], admit: Admission, isDryRun = false): Promise<Stored> {
    const { namespace = '', name } = before.metadata;
    return this.#request(`${namespace}/${name}`, isDryRun ? [] : wanted, admit, (added) => {
      if (isDryRun) return before;
      if (this.#plane.find('services', namespace, name) !== before) return undefined;
      const spec = withAddresses(before.spec, [...addressesOf(before), ...added]);
      return this.#store({ ...before, spec: { ...spec, type: 'ClusterIP' } });
    });
  }

  /** Keeps the first addresses of a Service: one for a single stack, none for an ExternalName. The API server then releases the others. */
  async downgrade(
    before: StoredService,
    left: number,
    admit: Admission,
    released: () => Promise<void>,
  ): Promise<Stored> {
    const { namespace = '', name } = before.metadata;
    if ((await admit()) !== 'allowed' || this.#plane.find('services', namespace, name) !== before) {
      return { outcome: 'refused', message: 'refused, or was changed' };
    }
    const [kept, others] = [addressesOf(before).slice(0, left), addressesOf(before).slice(left)];
    const { clusterIP: _, clusterIPs: __, ipFamilies: ___, ...spec } = before.spec;
    const type = left === 0 ? 'ExternalName' : 'ClusterIP';
    const service = this.#store({ ...before, spec: { ...(left > 0 ? withAddresses(spec, kept) : spec), type } });
    await released();
    for (const address of others) this.release(address);
    return { outcome: 'stored', service };
  }

  /** Deletes a Service, and its IPAddresses a moment later. With a finalizer, it stays. */
  async remove(namespace: string, name: string, released: () => Promise<void>): Promise<void> {
    const service = this.#plane.find<StoredService>('services', namespace, name);
    if (service === undefined) return;
    const { metadata } = service;
    if ((metadata.finalizers ?? []).length > 0) {
      const deletionTimestamp = new Date(this.#nowMs()).toISOString();
      this.#store({ ...service, metadata: { ...metadata, deletionTimestamp } });
      return;
    }
    this.#plane.remove('services', namespace, name, BY_API_SERVER);
    await released();
    for (const address of addressesOf(service)) this.release(address);
  }

  /** Removes the finalizers of a Service, which ends its deletion. */
  async finalize(namespace: string, name: string, released: () => Promise<void>): Promise<void> {
    const service = this.#plane.find<StoredService>('services', namespace, name);
    if (service === undefined) return;
    const { finalizers: _, ...metadata } = service.metadata;
    this.#store({ ...service, metadata });
    if (metadata.deletionTimestamp !== undefined) await this.remove(namespace, name, released);
  }

  /** Compares all Services and IPAddresses once, as the own repair of an API server does. */
  repair(): void {
    for (const service of this.#cached.services) {
      for (const address of addressesOf(service)) {
        if (this.cidrs().some((cidr) => hasItem(cidr, address))) this.#repairRecord(service, address);
      }
    }
    const nowMs = this.#nowMs();
    for (const record of this.addresses())
      if (isManaged(record) && this.#isWrong(record, nowMs)) this.release(record.metadata.name);
  }

  /** Creates a missing IPAddress, and replaces one of an object that is no Service or does not exist, or without its labels. */
  #repairRecord({ metadata: { namespace, name } }: StoredService, address: string): void {
    const record = this.#plane.find<IPAddressObject>('ipaddresses', '', address);
    if (record !== undefined && isManaged(record) && this.#parent(record) !== undefined) return;
    this.release(address);
    this.#plane.place('ipaddresses', stockRecord(address, `${namespace}/${name}`), BY_API_SERVER);
  }

  #isWrong(record: IPAddressObject, nowMs: number): boolean {
    const parent = this.#parent(record);
    const { name, creationTimestamp = '' } = record.metadata;
    const ageMs = nowMs - Date.parse(creationTimestamp);
    if (parent === undefined) return ageMs > LEAKED_AFTER_MS;
    if (addressesOf(parent).includes(name)) return false;
    if (parent.spec.type === 'ExternalName' && ageMs < LEAKED_AFTER_MS) return false;
    const isNewer = creationTimestamp > (parent.metadata.creationTimestamp ?? '');
    return !isNewer || ageMs >= WRONG_AFTER_MS;
  }

  /** Returns the Service that an IPAddress references. */
  #parent({ spec: { parentRef } }: IPAddressObject): StoredService | undefined {
    return parentRef.resource === 'services'
      ? this.#plane.find<StoredService>('services', parentRef.namespace, parentRef.name)
      : undefined;
  }

  release(address: string): void {
    if (this.#plane.find('ipaddresses', '', address) !== undefined)
      this.#plane.remove('ipaddresses', '', address, BY_API_SERVER);
  }

  async #request(
    key: string,
    wanted: readonly string[],
    admit: Admission,
    store: (addresses: string[]) => StoredService | undefined,
  ): Promise<Stored> {
    const got: string[] = [];
    const leave = (message: string): Stored => {
      for (const address of got) this.underWay.delete(address);
      return { outcome: 'refused', message };
    };
    const rollBack = (message: string): Stored => {
      for (const address of got) this.release(address);
      return leave(message);
    };
    for (const each of wanted) {
      const address = this.#allocate(key, each);
      // A real API server does not release the address of the first family either.
      if (address === undefined) return leave(`${each}: provided IP is already allocated, or is not in a range`);
      this.underWay.set(address, key);
      got.push(address);
    }
    const admitted = await admit();
    if (admitted === 'died') return leave('the API server died');
    if (admitted === 'refused') return rollBack('admission webhook denied the request');
    const service = store(got);
    if (service === undefined) return rollBack('already exists, or was changed');
    for (const address of got) this.underWay.delete(address);
    return { outcome: 'stored', service };
  }

  #allocate(key: string, wanted: string): string | undefined {
    if (!wanted.startsWith('IPv')) return this.#record(key, wanted);
    const ranges = this.#cached.openCidrs.filter((cidr) => isIPv6(cidr) === (wanted === 'IPv6'));
    for (let left = TRIES; left > 0; left--) {
      const range = ranges[this.#pick(ranges.length)];
      const address = range && this.#record(key, itemAt(range, this.#pick(sizeOf(range))));
      if (address !== undefined) return address;
    }
    return undefined;
  }

  #record(key: string, address: string): string | undefined {
    const isServed = this.#cached.openCidrs.some((cidr) => hasItem(cidr, address));
    if (!isServed || this.#plane.find('ipaddresses', '', address) !== undefined) return undefined;
    this.#plane.place('ipaddresses', stockRecord(address, key), BY_API_SERVER);
    return address;
  }

  #store(service: StoredService): StoredService {
    return this.#plane.place('services', service, BY_API_SERVER) as StoredService;
  }
}

export function isManaged({ metadata }: KubernetesObject): boolean {
  return metadata.labels?.[ADDRESS_MANAGED_BY_LABEL] === MANAGED;
}

export function parentOf({ spec: { parentRef } }: IPAddressObject): string {
  return `${parentRef.namespace}/${parentRef.name}`;
}

export function addressesOf({ spec }: StoredService): readonly string[] {
  return spec.clusterIPs ?? [];
}

export function withAddresses(spec: ServiceSpec, clusterIPs: readonly string[]): ServiceSpec {
  const ipFamilies = clusterIPs.map((address) => (isIPv6(address) ? 'IPv6' : 'IPv4'));
  return { ...spec, clusterIP: clusterIPs[0] ?? '', clusterIPs, ipFamilies };
}
