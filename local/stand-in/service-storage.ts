import { isIP } from 'node:net';
import { type Plan, type PortPlace, planOf } from '../../lib/admission/plan.ts';
import { type AllocatedItems, addressRefusal, portRefusal, type RefusalStatus } from '../../lib/admission/response.ts';
import { asRead, completeUpdate, holdOwnerOf, type ServiceSpec, serviceShape } from '../../lib/admission/service.ts';
import { familyOf, type IPFamily } from '../../lib/allocator/ip-address.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import type { ServiceObject, ServicePort } from '../../lib/cluster/published-objects.ts';
import type { StoredObject } from './object-store.ts';
import { invalid, SERVICES, StatusError } from './resources.ts';

export type StoredServiceSpec = ServiceObject['spec'] & { readonly [field: string]: unknown };

export type StoredService = StoredObject & { readonly spec: StoredServiceSpec };

/** An address or port as text, or the reason why it was not allocated. */
export type Given = { readonly item: string } | Refusal;

export interface ItemAllocator {
  /** Allocates the item, or any free item for `undefined`. `holdOwner` is the label by which the Service may claim a hold. */
  allocate(item: string | undefined, holdOwner?: string): Promise<Given>;
  release(item: string): Promise<void>;
}

export interface ServiceAllocator {
  readonly addresses: ItemAllocator;
  readonly ports: ItemAllocator;
}

export function asService(object: StoredObject): StoredService {
  return { ...object, spec: (object['spec'] as StoredServiceSpec | undefined) ?? {} };
}

/** Fills in the defaults of the API, and refuses a Service that the API's validation refuses. */
export function defaulted(service: StoredService): StoredService {
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
 * Returns a changed spec without the node ports that its new type does not use, unless the change sets other node ports
 * (`dropTypeDependentFields` of `pkg/registry/core/service/strategy.go`).
 */
export function withoutUnusedPorts(before: StoredServiceSpec, after: StoredServiceSpec): StoredServiceSpec {
  const changed = nodePortsOf(after).some((port) => !nodePortsOf(before).includes(port));
  const usesPorts = ({ type = 'ClusterIP' }: StoredServiceSpec) => type === 'NodePort' || type === 'LoadBalancer';
  if (!usesPorts(before) || usesPorts(after) || changed) return after;
  const { healthCheckNodePort: _unused, ports, ...rest } = after;
  return { ...rest, ...(ports && { ports: ports.map(({ nodePort: _none, ...port }) => port) }) };
}

function nodePortsOf({ ports = [] }: StoredServiceSpec): number[] {
  return ports.map(({ nodePort = 0 }) => nodePort).filter(Boolean);
}

function faultOf(spec: StoredServiceSpec): string | undefined {
  const ports = spec.ports ?? [];
  const needsPorts = spec.type !== 'ExternalName' && spec.clusterIP !== 'None';
  if (ports.length === 0 && needsPorts) return 'spec.ports: Required value';
  const addresses = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  const bad = addresses.findIndex((address) => address !== 'None' && isIP(address) === 0);
  if (bad >= 0) return `spec.clusterIPs[${bad}]: Invalid value: "${addresses[bad]}": must be a valid IP address`;
  return ports.map((port, index) => portFault(port, `spec.ports[${index}]`, spec)).find(Boolean);
}

function portFault({ port, name, nodePort }: ServicePort, path: string, spec: StoredServiceSpec): string | undefined {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    return `${path}.port: Invalid value: ${port}: must be between 1 and 65535, inclusive`;
  }
  if (!name && spec.ports && spec.ports.length > 1) return `${path}.name: Required value`;
  if (nodePort && spec.type === 'ClusterIP')
    return `${path}.nodePort: Forbidden: may not be used when \`type\` is 'ClusterIP'`;
  return undefined;
}

export function claimsOf({ spec }: StoredService): { addresses: string[]; ports: number[] } {
  const ports = new Set([...nodePortsOf(spec), spec.healthCheckNodePort ?? 0].filter(Boolean));
  const addresses = (spec.clusterIPs ?? []).filter((address) => address !== 'None' && address !== '');
  return { addresses: spec.type === 'ExternalName' ? [] : addresses, ports: [...ports] };
}

/** Stores a Service with the items that the registry would allocate. If an allocation or `store` fails, releases new items. */
export async function storeAllocated(
  service: StoredService,
  before: StoredService | undefined,
  allocator: ServiceAllocator,
  store: (allocated: StoredService) => StoredObject,
): Promise<StoredObject> {
  const taken = { addresses: [] as string[], ports: [] as number[] };
  const after = serviceShape.parse(service);
  const old = before && serviceShape.parse(before).spec;
  const complete = old === undefined ? after.spec : completeUpdate(after.spec, asRead(old));
  const plan = planOf(after.spec, old, familiesIn(service));
  const { name } = service.metadata;
  const holdOwner = holdOwnerOf(after);
  try {
    for (const wanted of plan.addresses) {
      const given = await allocator.addresses.allocate(wanted.value || undefined, holdOwner);
      if (isRefused(given)) throw statusOf(given, addressRefusal(name, plan, wanted, given));
      taken.addresses.push(given.item);
    }
    for (const wanted of plan.ports) {
      const given = await allocator.ports.allocate(wanted.value === 0 ? undefined : String(wanted.value), holdOwner);
      if (isRefused(given)) throw statusOf(given, portRefusal(name, wanted, given));
      taken.ports.push(Number(given.item));
    }
    return store(filledIn(service, complete, plan, taken));
  } catch (error) {
    await releaseClaims(taken, allocator);
    throw error;
  }
}

export async function releaseClaims(claims: AllocatedItems, allocator: ServiceAllocator): Promise<void> {
  for (const address of claims.addresses) await allocator.addresses.release(address);
  for (const port of claims.ports) await allocator.ports.release(String(port));
}

/** Returns the families of a Service. The stand-in's only range is IPv4, so other families come from requested addresses. */
function familiesIn({ spec: { clusterIPs = [] } }: StoredService): readonly IPFamily[] {
  const families = clusterIPs.flatMap((address) => familyOf(address) ?? []);
  return families.length === 0 ? ['IPv4'] : families;
}

/** Returns the status for a refusal: 500 for `NotReady`, which is not a fault of the request. */
function statusOf(error: Refusal, { code, reason, message }: RefusalStatus): StatusError {
  return error.code === 'NotReady'
    ? new StatusError(500, 'InternalError', `Internal error occurred: ${error.message}`)
    : new StatusError(code, reason, message);
}

/** @param complete the spec of the client. Node ports that the client omitted are from the previous object */
function filledIn(
  service: StoredService,
  complete: ServiceSpec,
  plan: Plan,
  { addresses, ports }: AllocatedItems,
): StoredService {
  const clusterIPs = [...plan.clusterIPs];
  for (const [place, { index }] of plan.addresses.entries()) clusterIPs[index] = addresses[place] ?? '';
  const allocatedAt = (place: PortPlace) => ports[plan.ports.findIndex(({ at }) => at.includes(place))];
  const filled = service.spec.ports?.map((port, index) => {
    const nodePort = allocatedAt(index) ?? complete.ports[index]?.nodePort;
    return { ...port, ...(nodePort && { nodePort }) };
  });
  const healthCheckNodePort = allocatedAt('healthCheck') ?? complete.healthCheckNodePort;
  const ipFamilies = clusterIPs.map((address) => familyOf(address) ?? 'IPv4');
  return {
    ...service,
    spec: {
      ...service.spec,
      ...(clusterIPs.length > 0 && { clusterIP: clusterIPs[0] ?? '', clusterIPs, ipFamilies }),
      ...(filled && { ports: filled }),
      ...(healthCheckNodePort > 0 && { healthCheckNodePort }),
    },
  };
}
