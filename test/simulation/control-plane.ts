import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { HttpRequest } from '../../lib/kubernetes/http-client.ts';

export interface StoredService extends KubernetesObject {
  readonly spec: ServiceSpec;
}

export interface ServiceSpec {
  readonly type: 'ClusterIP' | 'NodePort';
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly ipFamilies?: readonly string[];
  readonly ipFamilyPolicy?: string;
  readonly ports: readonly { readonly port: number; readonly protocol: 'TCP'; readonly nodePort?: number }[];
}

export interface HttpReply {
  readonly status: number;
  readonly body: object | string;
}

export interface ObjectWrite {
  readonly kind: string;
  readonly name: string;
  readonly by: string;
}

const NOT_SERVED = 'the server could not find the requested resource';

/** The objects of one cluster, and the answers of all its API servers. Writes are conditional, as in a real API server. */
export class ControlPlane {
  readonly #objects: Map<string, KubernetesObject>;
  #version: number;
  onWrite: (write: ObjectWrite) => void = () => {};

  constructor(from?: ControlPlane) {
    this.#objects = new Map(from?.objects());
    this.#version = from === undefined ? 100 : from.version;
  }

  get version(): number {
    return this.#version;
  }

  objects(): ReadonlyMap<string, KubernetesObject> {
    return this.#objects;
  }

  find<T extends KubernetesObject>(kind: string, namespace: string, name: string): T | undefined {
    return this.#objects.get(`${kind}/${namespace}/${name}`) as T | undefined;
  }

  services(): StoredService[] {
    return this.#all('services') as StoredService[];
  }

  slices(): EndpointSlice[] {
    return this.#all('endpointslices') as EndpointSlice[];
  }

  /** Writes an object as a writer other than the functions. */
  place(kind: string, object: KubernetesObject, by = 'kubectl'): KubernetesObject {
    const { namespace = '', name, uid = `uid-${this.#version + 1}` } = object.metadata;
    this.#version++;
    const metadata = { ...object.metadata, uid, resourceVersion: String(this.#version) };
    const stored = { ...object, metadata };
    this.#objects.set(`${kind}/${namespace}/${name}`, stored);
    this.onWrite({ kind, name, by });
    return stored;
  }

  remove(kind: string, namespace: string, name: string, by = 'kubectl'): void {
    this.#version++;
    this.#objects.delete(`${kind}/${namespace}/${name}`);
    this.onWrite({ kind, name, by });
  }

  answer({ method, path, body }: HttpRequest, by: string): HttpReply {
    const [, , namespace = '', kind = '', name] =
      /^\/apis?\/(?:v1|[a-z.0-9]+\/v1)(\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/?]+))?/.exec(path) ?? [];
    if (kind === 'servicecidrs') return status(404, '', NOT_SERVED);
    if (method === 'GET') return name === undefined ? this.#list(kind) : this.#get(kind, namespace, name);
    const object = JSON.parse(body ?? '{}') as KubernetesObject & { readonly preconditions?: Preconditions };
    if (method === 'POST') return this.#create(kind, namespace, object, by);
    const wanted = object.preconditions ?? object.metadata;
    const current = this.find(kind, namespace, name ?? '');
    if (current === undefined) return status(404, 'NotFound', `${kind} "${name}" not found`, kind);
    const { uid, resourceVersion } = current.metadata;
    if (wanted.uid !== uid || wanted.resourceVersion !== resourceVersion) {
      return status(409, 'Conflict', `${kind} "${name}": the object has been modified`);
    }
    if (method !== 'DELETE') return { status: 200, body: this.place(kind, object, by) };
    this.remove(kind, namespace, name ?? '', by);
    return { status: 200, body: { kind: 'Status', apiVersion: 'v1', status: 'Success' } };
  }

  #get(kind: string, namespace: string, name: string): HttpReply {
    const found = this.find(kind, namespace, name);
    return found === undefined ? status(404, 'NotFound', 'not found', kind) : { status: 200, body: found };
  }

  #list(kind: string): HttpReply {
    const [apiVersion, listKind] =
      kind === 'services' ? ['v1', 'ServiceList'] : ['discovery.k8s.io/v1', 'EndpointSliceList'];
    const metadata = { resourceVersion: String(this.#version) };
    return { status: 200, body: { apiVersion, kind: listKind, metadata, items: this.#all(kind) } };
  }

  #create(kind: string, namespace: string, object: KubernetesObject, by: string): HttpReply {
    if (kind === 'events') return { status: 201, body: object };
    if (this.find(kind, namespace, object.metadata.name) !== undefined) {
      return status(409, 'AlreadyExists', 'already exists', kind);
    }
    return { status: 201, body: this.place(kind, object, by) };
  }

  #all(kind: string): KubernetesObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object);
  }
}

type Preconditions = Pick<KubernetesObject['metadata'], 'uid' | 'resourceVersion'>;

export function status(code: number, reason: string, message: string, kind = ''): HttpReply {
  return {
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details: { kind } },
  };
}

export interface Endpoints extends KubernetesObject {
  readonly subsets?: readonly { readonly addresses?: readonly { readonly ip: string }[] }[];
}

export interface EndpointSlice extends KubernetesObject {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[];
}

export function endpointAddresses({ subsets = [] }: Partial<Endpoints> = {}): string[] {
  return subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)).sort();
}

export function sliceAddresses({ endpoints = [] }: Partial<EndpointSlice> = {}): string[] {
  return endpoints.flatMap(({ addresses }) => addresses).sort();
}

export function isIPv6(address: string): boolean {
  return address.includes(':');
}

export function itemsOf({ spec }: { readonly spec: ServiceSpec }): string[] {
  const ports = spec.ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : String(nodePort)));
  return [...(spec.clusterIPs ?? []), ...ports];
}
