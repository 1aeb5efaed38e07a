import * as z from 'zod/mini';
import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';

const port = z.object({
  name: z._default(z.string(), ''),
  protocol: z._default(z.string(), 'TCP'),
  port: z.int(),
  nodePort: z._default(z.int(), 0),
});

const spec = z.object({
  type: z._default(z.string(), 'ClusterIP'),
  clusterIP: z._default(z.string(), ''),
  clusterIPs: z._default(z.array(z.string()), []),
  ipFamilies: z._default(z.array(z.string()), []),
  ipFamilyPolicy: z.optional(z.string()),
  ports: z._default(z.array(port), []),
  healthCheckNodePort: z._default(z.int(), 0),
  externalTrafficPolicy: z.optional(z.string()),
  allocateLoadBalancerNodePorts: z.optional(z.boolean()),
});

/** What of a Service decides about its addresses and ports. */
export const serviceShape = z.object({
  metadata: z.object({
    name: z._default(z.string(), ''),
    generateName: z._default(z.string(), ''),
    labels: z._default(z.record(z.string(), z.string()), {}),
  }),
  spec: z._default(spec, {
    type: '',
    clusterIP: '',
    clusterIPs: [],
    ipFamilies: [],
    ports: [],
    healthCheckNodePort: 0,
  }),
});

/**
 * After the API's defaulting, before the registry's: `type` is there, `ipFamilies` and `ipFamilyPolicy` need not be. As
 * in Go, what is not there is empty or 0.
 */
export type ServiceSpec = Readonly<z.infer<typeof spec>>;
export type ServicePort = ServiceSpec['ports'][number];
export type Service = z.infer<typeof serviceShape>;

/** A DNS label. The registry refuses a Service or a port with another name. */
export const NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

export const HEADLESS = 'None';

export function isHeadless({ clusterIPs, clusterIP }: ServiceSpec): boolean {
  return (clusterIPs[0] ?? clusterIP) === HEADLESS;
}

export function hasClusterIP({ type }: ServiceSpec): boolean {
  return type !== 'ExternalName';
}

export function mayHaveNodePorts({ type }: ServiceSpec): boolean {
  return type === 'NodePort' || type === 'LoadBalancer';
}

/** Whether ports without a node port get one. */
export function getsNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false);
}

/** Whether it has a port for health checks (`NeedsHealthCheck` of `pkg/api/service/util.go`). */
export function getsHealthCheckPort({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local';
}

/** For whom what it asks for may be held. */
export function holdOwnerOf({ metadata }: Service): string | undefined {
  return metadata.labels[HOLD_OWNER_LABEL];
}

export function sameTexts(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}
