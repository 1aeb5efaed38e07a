import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod/mini';
import { familyOf } from '../allocator/ip-address.ts';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { HOLD_OWNER_LABEL } from '../cluster/kubernetes-objects.ts';

/** Returns the shape of a list of up to `most` entries. The length is checked first: each invalid entry takes 1 KB of memory. */
function listOf<Entry extends z.ZodMiniType>(entry: Entry, most: number) {
  const bounded = z.array(z.unknown()).check(z.maxLength(most, `has more than ${most} entries`));
  return z._default(z.pipe(bounded, z.array(entry)), []);
}

const port = z.object({
  name: z._default(z.string(), ''),
  protocol: z._default(z.string(), 'TCP'),
  port: z.int(),
  nodePort: z._default(z.int(), 0),
});

const spec = z.object({
  type: z._default(z.string(), 'ClusterIP'),
  clusterIP: z._default(z.string(), ''),
  clusterIPs: listOf(z.string(), 16),
  ipFamilies: listOf(z.string(), 16),
  ipFamilyPolicy: z.optional(z.string()),
  ports: listOf(port, 3_000),
  healthCheckNodePort: z._default(z.int(), 0),
  externalTrafficPolicy: z.optional(z.string()),
  allocateLoadBalancerNodePorts: z.optional(z.boolean()),
});

/** The fields of a Service that determine its addresses and ports. */
export const serviceShape = z.object({
  metadata: z.object({
    name: z._default(z.string(), ''),
    generateName: z._default(z.string(), ''),
    labels: z._default(z.object({ [HOLD_OWNER_LABEL]: z.optional(z.string()) }), {}),
  }),
  spec: z._default(spec, { ...spec.parse({}), type: '' }),
});

/** A Service's spec with the API server's defaults, before the registry completes it. An absent value is empty or 0, as in Go. */
export type ServiceSpec = Readonly<z.infer<typeof spec>>;
export type SentPort = ServiceSpec['ports'][number];
export type Service = z.infer<typeof serviceShape>;

/** Matches a DNS label. The registry refuses a Service or a port whose name is not a DNS label. */
export const NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

export const HEADLESS = 'None';

export function isHeadless({ clusterIPs, clusterIP }: ServiceSpec): boolean {
  return (clusterIPs[0] ?? clusterIP) === HEADLESS;
}

export function hasClusterIP({ type }: ServiceSpec): boolean {
  return type !== 'ExternalName';
}

/**
 * Returns whether requested node ports are allocated. This includes the node ports of an ExternalName Service: the registry
 * stores them without an allocation, so another Service could have the same node ports when the type changes.
 */
export function mayHaveNodePorts({ type }: ServiceSpec): boolean {
  return type !== 'ClusterIP';
}

export function getsNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false);
}

/** Corresponds to `NeedsHealthCheck` of `pkg/api/service/util.go`. */
export function getsHealthCheckPort({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local';
}

export function holdOwnerOf({ metadata }: Service): string | undefined {
  return metadata.labels[HOLD_OWNER_LABEL];
}

/*
 * A webhook gets a Service as the client sent it. These functions complete the Service as the registry does before an allocation
 * (`pkg/registry/core/service/storage/storage.go`).
 */

/** Returns the spec of a new Service. If an old client set only `clusterIP`, copies it to `clusterIPs`. */
export function completeNew(spec: ServiceSpec): ServiceSpec {
  const { clusterIP, clusterIPs } = spec;
  return clusterIP !== '' && clusterIPs.length === 0 ? { ...spec, clusterIPs: [clusterIP] } : spec;
}

/** Returns a stored Service as the registry reads it: with families, even if it was stored without families. */
export function asRead(stored: ServiceSpec): ServiceSpec {
  const spec = completeNew(stored);
  if (!hasClusterIP(spec) || spec.ipFamilies.length > 0 || isHeadless(spec)) return spec;
  const ipFamilies = spec.clusterIPs.map((address) => (familyOf(address) === 'IPv6' ? 'IPv6' : 'IPv4'));
  const ipFamilyPolicy = ipFamilies.length === 2 ? 'RequireDualStack' : 'SingleStack';
  return { ...spec, ipFamilies, ...(ipFamilies.length > 0 && { ipFamilyPolicy }) };
}

/** Returns the new object of an update. Omitted fields are copied from the old object. `before` is the result of `asRead`. */
export function completeUpdate(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  const both = (has: (spec: ServiceSpec) => boolean) => has(before) && has(after);
  const complete = {
    ...after,
    ...(both(hasClusterIP) && {
      clusterIP: after.clusterIP || before.clusterIP,
      clusterIPs: after.clusterIPs.length === 0 ? before.clusterIPs : after.clusterIPs,
    }),
    ...(both(getsNodePorts) && { ports: withNodePorts(after.ports, before.ports) }),
    ...(both(getsHealthCheckPort) && {
      healthCheckNodePort: after.healthCheckNodePort || before.healthCheckNodePort,
    }),
  };
  return syncClusterIPs(complete, before);
}

/** Copies an omitted node port from the old port of the same name, unless another new port has this node port. */
function withNodePorts(after: readonly SentPort[], before: readonly SentPort[]): SentPort[] {
  const still = numbersOf(after);
  const byName = new Map(before.map(({ name, nodePort }) => [name, nodePort]));
  return after.map((port) => {
    const nodePort = byName.get(port.name) ?? 0;
    return port.nodePort !== 0 || still.has(nodePort) ? port : { ...port, nodePort };
  });
}

/** If the client changed or cleared only `clusterIP`, changes `clusterIPs` accordingly. */
function syncClusterIPs(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  if (before.clusterIP === after.clusterIP) {
    return after.clusterIPs.length === 0 ? { ...after, clusterIPs: before.clusterIPs } : after;
  }
  if (!isDeepStrictEqual(before.clusterIPs, after.clusterIPs)) return after;
  return { ...after, clusterIPs: after.clusterIP === '' ? [] : [after.clusterIP] };
}

export function numbersOf(ports: readonly SentPort[]): Set<number> {
  return new Set(ports.map(({ nodePort }) => nodePort).filter((number) => number !== 0));
}

const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const LONGEST_NAME = 63;

/** Returns the name of a Service. Completes `generateName` as the registry does (`apiserver/pkg/storage/names/generate.go`). */
export function serviceName({ metadata: { name, generateName } }: Service, pick: PickIndex): string {
  if (name !== '' || generateName === '') return name;
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_LETTERS[pick(SUFFIX_LETTERS.length)]);
  return generateName.slice(0, LONGEST_NAME - SUFFIX_LENGTH) + suffix.join('');
}
