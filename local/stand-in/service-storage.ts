import { isIP } from 'node:net';
import { HOLD_OWNER_LABEL } from '../../lib/cluster/kubernetes-objects.ts';
import type { ServiceObject, ServicePort } from '../../lib/endpoints/objects.ts';
import type { StoredObject } from './object-store.ts';
import { invalid, SERVICES, StatusError } from './resources.ts';

export type ServiceSpec = ServiceObject['spec'] & {
  readonly clusterIPs?: readonly string[];
  readonly ipFamilies?: readonly string[];
  readonly healthCheckNodePort?: number;
  readonly [field: string]: unknown;
};

export type Service = StoredObject & { readonly spec: ServiceSpec };

/** The reason why an address or port was not allocated: `full` is the server's fault, `refused` the request's. */
export type Allocated<Item> =
  | { readonly item: Item }
  | { readonly refusal: 'full' | 'refused'; readonly message: string };

/** Allocates addresses and ports for the stand-in's Services. `undefined` requests any. */
export interface ServiceAllocation {
  /** Allocates a held item only for a Service that may claim it: by `holdOwner`, its label. */
  allocateAddress(address: string | undefined, holdOwner?: string): Promise<Allocated<string>>;
  allocatePort(port: number | undefined, holdOwner?: string): Promise<Allocated<number>>;
  releaseAddress(address: string): Promise<void>;
  releasePort(port: number): Promise<void>;
}

export function asService(object: StoredObject): Service {
  return { ...object, spec: (object['spec'] as ServiceSpec | undefined) ?? {} };
}

/** Fills in defaults as the API does, and refuses what its validation would. */
export function defaulted(service: Service): Service {
  const { spec } = service;
  const type = spec.type ?? 'ClusterIP';
  const ports = (spec.ports ?? []).map((port) => ({ protocol: 'TCP', targetPort: port.port, ...port }));
  const fault = faultOf({ ...spec, type, ports });
  if (fault !== undefined) throw invalid(SERVICES, service.metadata.name, fault);
  const clusterIPs = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  return {
    ...service,
    spec: {
      sessionAffinity: 'None',
      ...(type !== 'ExternalName' && { internalTrafficPolicy: 'Cluster', ipFamilyPolicy: 'SingleStack' }),
      ...spec,
      type,
      ...(ports.length > 0 && { ports }),
      ...(clusterIPs.length > 0 && { clusterIP: clusterIPs[0] ?? '', clusterIPs }),
    },
  };
}

/**
 * Returns a changed spec without the node ports that its new type does not use, unless the change named other ports
 * (`dropTypeDependentFields` of pkg/registry/core/service/strategy.go).
 */
export function withoutUnusedPorts(before: ServiceSpec, after: ServiceSpec): ServiceSpec {
  const nodePortsOf = ({ ports = [] }: ServiceSpec) => ports.map(({ nodePort = 0 }) => nodePort).filter(Boolean);
  const changed = nodePortsOf(after).some((port) => !nodePortsOf(before).includes(port));
  if (!usesNodePorts(before.type) || usesNodePorts(after.type) || changed) return after;
  const { healthCheckNodePort: _unused, ports, ...rest } = after;
  return { ...rest, ...(ports && { ports: ports.map(({ nodePort: _none, ...port }) => port) }) };
}

function usesNodePorts(type: string | undefined): boolean {
  return type === 'NodePort' || type === 'LoadBalancer';
}

function faultOf(spec: ServiceSpec): string | undefined {
  const ports = spec.ports ?? [];
  const needsPorts = spec.type !== 'ExternalName' && spec.clusterIP !== 'None';
  if (ports.length === 0 && needsPorts) return 'spec.ports: Required value';
  const addresses = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  const bad = addresses.findIndex((address) => address !== 'None' && isIP(address) === 0);
  if (bad >= 0) return `spec.clusterIPs[${bad}]: Invalid value: "${addresses[bad]}": must be a valid IP address`;
  return ports.map((port, index) => portFault(port, `spec.ports[${index}]`, ports.length > 1, spec.type)).find(Boolean);
}

function portFault(
  { port, name, nodePort }: ServicePort,
  path: string,
  needsName: boolean,
  type: string | undefined,
): string | undefined {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    return `${path}.port: Invalid value: ${port}: must be between 1 and 65535, inclusive`;
  }
  if (needsName && !name) return `${path}.name: Required value`;
  if (nodePort && type === 'ClusterIP')
    return `${path}.nodePort: Forbidden: may not be used when \`type\` is 'ClusterIP'`;
  return undefined;
}

export function claimsOf({ spec }: Service): { addresses: string[]; ports: number[] } {
  const ports = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0));
  ports.add(spec.healthCheckNodePort ?? 0);
  ports.delete(0);
  const addresses = (spec.clusterIPs ?? []).filter((address) => address !== 'None' && address !== '');
  return { addresses: spec.type === 'ExternalName' ? [] : addresses, ports: [...ports] };
}

/** Allocates the items that a Service lacks, or releases all of them if one is refused. */
export async function allocateFor(
  service: Service,
  held: { addresses: readonly string[]; ports: readonly number[] },
  allocation: ServiceAllocation,
): Promise<{ service: Service; undo: () => Promise<void> }> {
  const taken = { addresses: [] as string[], ports: [] as number[] };
  const undo = () => releaseClaims(taken, allocation);
  try {
    const addressed = await withAddresses(service, held.addresses, taken.addresses, allocation);
    return { service: await withPorts(addressed, held.ports, taken.ports, allocation), undo };
  } catch (error) {
    await undo();
    throw error;
  }
}

export async function releaseClaims(
  claims: { addresses: readonly string[]; ports: readonly number[] },
  allocation: ServiceAllocation,
): Promise<void> {
  for (const address of claims.addresses) await allocation.releaseAddress(address);
  for (const port of claims.ports) await allocation.releasePort(port);
}

async function withAddresses(
  service: Service,
  held: readonly string[],
  taken: string[],
  allocation: ServiceAllocation,
): Promise<Service> {
  const { spec, metadata } = service;
  if (spec.type === 'ExternalName' || spec.clusterIP === 'None') return service;
  const wanted: readonly (string | undefined)[] = spec.clusterIPs?.length ? spec.clusterIPs : [undefined];
  const clusterIPs: string[] = [];
  for (const address of wanted) {
    if (address !== undefined && held.includes(address)) {
      clusterIPs.push(address);
      continue;
    }
    const result = await allocation.allocateAddress(address, holdOwnerOf(service));
    if (!('item' in result)) throw addressRefused(metadata.name, address, result);
    taken.push(result.item);
    clusterIPs.push(result.item);
  }
  const ipFamilies = clusterIPs.map((address) => (isIP(address) === 6 ? 'IPv6' : 'IPv4'));
  return { ...service, spec: { ...spec, clusterIP: clusterIPs[0] ?? '', clusterIPs, ipFamilies } };
}

function addressRefused(
  name: string,
  address: string | undefined,
  { refusal, message }: { refusal: 'full' | 'refused'; message: string },
): StatusError {
  if (refusal === 'full' || address === undefined) {
    return internal(`failed to allocate a serviceIP for Service ${JSON.stringify(name)}: ${message}`);
  }
  const fault = `spec.clusterIPs: Invalid value: ["${address}"]: failed to allocate IP ${address}: ${message}`;
  return invalid(SERVICES, name, fault);
}

/** Ports of one Service that share a `port` number share a node port: TCP and UDP 53 are one 30053. */
async function withPorts(
  service: Service,
  held: readonly number[],
  taken: number[],
  allocation: ServiceAllocation,
): Promise<Service> {
  const { spec } = service;
  if (!usesNodePorts(spec.type)) return service;
  const byPort = new Map(
    (spec.ports ?? []).filter(({ nodePort }) => nodePort).map((port) => [port.port, port.nodePort]),
  );
  const ports: ServicePort[] = [];
  for (const port of spec.ports ?? []) {
    const wanted = port.nodePort || byPort.get(port.port);
    const isOurs =
      wanted !== undefined &&
      (held.includes(wanted) || ports.some((other) => other.port === port.port && other.nodePort === wanted));
    const nodePort = isOurs ? wanted : await portFor(service, ports.length, wanted, taken, allocation);
    byPort.set(port.port, nodePort);
    ports.push({ ...port, nodePort });
  }
  return { ...service, spec: { ...spec, ports } };
}

function holdOwnerOf({ metadata }: Service): string | undefined {
  return metadata.labels?.[HOLD_OWNER_LABEL];
}

async function portFor(
  service: Service,
  index: number,
  wanted: number | undefined,
  taken: number[],
  allocation: ServiceAllocation,
): Promise<number> {
  const result = await allocation.allocatePort(wanted, holdOwnerOf(service));
  if ('item' in result) {
    taken.push(result.item);
    return result.item;
  }
  if (wanted === undefined) throw internal(`failed to allocate a nodePort: ${result.message}`);
  throw invalid(
    SERVICES,
    service.metadata.name,
    `spec.ports[${index}].nodePort: Invalid value: ${wanted}: ${result.message}`,
  );
}

function internal(message: string): StatusError {
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`);
}
