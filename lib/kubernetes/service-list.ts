import * as z from 'zod/mini';
import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { ClusterPort } from './cluster-port.ts';
import { MOST_CLUSTER_IPS, MOST_PORTS } from './reply-bounds.ts';
import { readService } from './service-protobuf.ts';
import { claimText, creationMs, type ItemReader, orEmpty, readJsonItem } from './streamed-list.ts';

function listOf<Shape extends z.core.$ZodType>(shape: Shape, most: number) {
  return orEmpty(z.array(shape).check(z.maxLength(most)), []);
}

const whole = orEmpty(z.int(), 0);
const metadata = z.object({
  name: claimText,
  namespace: claimText,
  uid: claimText,
  resourceVersion: claimText,
  creationTimestamp: creationMs,
  labels: orEmpty(z.object({ [HOLD_OWNER_LABEL]: z.optional(claimText) }), {}),
});
const spec = z.object({
  type: claimText,
  clusterIP: claimText,
  clusterIPs: listOf(claimText, MOST_CLUSTER_IPS),
  ports: listOf(z.object({ protocol: claimText, nodePort: whole }), MOST_PORTS),
  healthCheckNodePort: whole,
});
const service = z.object({ metadata, spec: orEmpty(spec, {}) });

/** Reads the fields of a Service that allocation depends on. */
export function serviceInJson(object: unknown): ServiceClaim {
  const { metadata: read, spec: claims } = readJsonItem(service, 'Service', object);
  const { labels, creationTimestamp: createdAtMs, ...names } = read;
  const holdOwner = labels[HOLD_OWNER_LABEL];
  return { ...names, ...claims, createdAtMs, ...(holdOwner !== undefined && { holdOwner }) };
}

export const SERVICE_READER: ItemReader<ServiceClaim> = {
  kind: 'Service',
  fromProtobuf: readService,
  fromJson: serviceInJson,
  entriesOf: ({ ports, clusterIPs }) => ports.length + clusterIPs.length,
};

/** Returns every Service of the cluster, for commands. A pass reads them one by one. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  const services: ServiceClaim[] = [];
  for await (const one of port.services()) {
    services.push(one);
  }
  return services;
}
