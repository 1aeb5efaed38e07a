import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { Chance } from './clock.ts';
import { type ControlPlane, isIPv6, type ServiceSpec, type StoredService } from './control-plane.ts';
import { hasItem, itemAt, sizeOf } from './stored-items.ts';

export const BY_API_SERVER = 'kube-apiserver';
const MANAGED = 'ipallocator.k8s.io';
const TRIES = 12;

export interface IPAddressObject extends KubernetesObject {
  readonly spec: {
    readonly parentRef: {
      readonly group: string;
      readonly resource: string;
      readonly namespace: string;
      readonly name: string;
    };
  };
}

export interface ServiceCidrObject extends KubernetesObject {
  readonly spec: { readonly cidrs: readonly string[] };
}

/** What happens to a request between its allocation and its write: `died` is the end of the API server. */
export type Admission = () => Promise<'allowed' | 'refused' | 'died'>;

export type Stored =
  | { readonly outcome: 'stored'; readonly service: StoredService }
  | { readonly outcome: 'refused'; readonly message: string };

/**
 * The requests for Services of kube-apiserver 1.33 and later: it creates the IPAddresses, runs the validating admission, stores the
 * Service, and, if anything fails, deletes the IPAddresses by name.
 */
export class StockApiServer {
  readonly #plane: ControlPlane;
  readonly #pick: Chance['pick'];
  /** The addresses of requests that run, with the Service. */
  readonly underWay = new Map<string, string>();

  constructor(plane: ControlPlane, { pick }: Chance) {
    this.#plane = plane;
    this.#pick = pick;
  }

  addresses(): IPAddressObject[] {
    return this.#plane.all('ipaddresses') as KubernetesObject[] as IPAddressObject[];
  }

  cidrs(): string[] {
    const objects = this.#plane.all('servicecidrs') as KubernetesObject[] as ServiceCidrObject[];
    return objects.flatMap(({ spec }) => spec.cidrs);
  }

  /** @param wanted for each cluster IP, the address or the name of a family */
  async create(service: StoredService, wanted: readonly string[], admit: Admission): Promise<Stored> {
    const { namespace = '', name } = service.metadata;
    return this.#request(`${namespace}/${name}`, wanted, admit, (clusterIPs) => {
      if (this.#plane.find('services', namespace, name) !== undefined) return undefined;
      return this.#store({ ...service, spec: withAddresses(service.spec, clusterIPs) });
    });
  }

  /** Adds the second family to a Service, or gives addresses to one that had none. */
  async upgrade(before: StoredService, wanted: readonly string[], admit: Admission): Promise<Stored> {
    const { namespace = '', name } = before.metadata;
    return this.#request(`${namespace}/${name}`, wanted, admit, (added) => {
      if (this.#plane.find('services', namespace, name) !== before) return undefined;
      const type = 'ClusterIP' as const;
      return this.#store({
        ...before,
        spec: { ...withAddresses(before.spec, [...addressesOf(before), ...added]), type },
      });
    });
  }

  /** Keeps the first addresses of a Service: one for a single stack, none for an ExternalName. The API server then releases the others. */
  async downgrade(before: StoredService, left: number, admit: Admission, released: () => Promise<void>): Promise<void> {
    const { namespace = '', name } = before.metadata;
    if ((await admit()) !== 'allowed' || this.#plane.find('services', namespace, name) !== before) return;
    const [kept, others] = [addressesOf(before).slice(0, left), addressesOf(before).slice(left)];
    const { clusterIP: _, clusterIPs: __, ipFamilies: ___, ...spec } = before.spec;
    const type = left === 0 ? 'ExternalName' : 'ClusterIP';
    this.#store({ ...before, spec: { ...(left > 0 ? withAddresses(spec, kept) : spec), type } as ServiceSpec });
    await released();
    for (const address of others) this.release(address);
  }

  /** Deletes a Service, and its IPAddresses a moment later. */
  async remove(namespace: string, name: string, released: () => Promise<void>): Promise<void> {
    const service = this.#plane.find<StoredService>('services', namespace, name);
    if (service === undefined) return;
    this.#plane.remove('services', namespace, name, BY_API_SERVER);
    await released();
    for (const address of addressesOf(service)) this.release(address);
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
    const rollBack = (message: string): Stored => {
      for (const address of got) this.release(address);
      for (const address of got) this.underWay.delete(address);
      return { outcome: 'refused', message };
    };
    for (const each of wanted) {
      const address = this.#allocate(key, each);
      if (address === undefined) return rollBack(`${each}: provided IP is already allocated, or is not in a range`);
      this.underWay.set(address, key);
      got.push(address);
    }
    const admitted = await admit();
    if (admitted === 'died') {
      for (const address of got) this.underWay.delete(address);
      return { outcome: 'refused', message: 'the API server died' };
    }
    if (admitted === 'refused') return rollBack('admission webhook denied the request');
    const service = store(got);
    if (service === undefined) return rollBack('already exists, or was changed');
    for (const address of got) this.underWay.delete(address);
    return { outcome: 'stored', service };
  }

  #allocate(key: string, wanted: string): string | undefined {
    if (!wanted.startsWith('IPv')) return this.#record(key, wanted);
    const ranges = this.cidrs().filter((cidr) => isIPv6(cidr) === (wanted === 'IPv6'));
    for (let left = TRIES; left > 0; left--) {
      const range = ranges[this.#pick(ranges.length)];
      const address = range && this.#record(key, itemAt(range, this.#pick(sizeOf(range))));
      if (address !== undefined) return address;
    }
    return undefined;
  }

  #record(key: string, address: string): string | undefined {
    const isServed = this.cidrs().some((cidr) => hasItem(cidr, address));
    if (!isServed || this.#plane.find('ipaddresses', '', address) !== undefined) return undefined;
    this.#plane.place('ipaddresses', recordOf(address, key), BY_API_SERVER);
    return address;
  }

  #store(service: StoredService): StoredService {
    return this.#plane.place('services', service, BY_API_SERVER) as StoredService;
  }
}

/** Returns the IPAddress of an address of a Service, as an API server creates it. */
export function recordOf(address: string, key: string): IPAddressObject {
  const [namespace = '', name = ''] = key.split('/');
  const labels = { [FAMILY_LABEL]: isIPv6(address) ? 'IPv6' : 'IPv4', [ADDRESS_MANAGED_BY_LABEL]: MANAGED };
  const spec = { parentRef: { group: '', resource: 'services', namespace, name } };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata: { name: address, labels }, spec };
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
