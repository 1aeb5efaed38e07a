import * as z from 'zod/mini';
import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { ClusterPort } from './cluster-port.ts';
import { type ProtobufReader, readMeta } from './protobuf.ts';
import { LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';
import { claimText, type ItemReader, metadataShape, orEmpty, readJsonItem } from './streamed-list.ts';

// Field numbers: k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

const LABELS = [Buffer.from(HOLD_OWNER_LABEL)];

type ServiceSpec = Pick<ServiceClaim, 'type' | 'clusterIP' | 'clusterIPs' | 'ports' | 'healthCheckNodePort'>;

/** Reads the fields of a Service that allocation depends on. Throws `MalformedProtobuf` or `OverBound`. */
export function readService(reader: ProtobufReader): ServiceClaim {
  let meta = { name: '', namespace: '', uid: '', resourceVersion: '', createdAtMs: 0 };
  let holdOwner: string | undefined;
  let claims: ServiceSpec = { type: '', clusterIP: '', clusterIPs: [], ports: [], healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1)
      ({
        labels: [holdOwner],
        ...meta
      } = readMeta(reader, LABELS));
    else if (field === 2) claims = readSpec(reader);
  });
  return { ...meta, ...claims, ...(holdOwner !== undefined && { holdOwner }) };
}

function readSpec(reader: ProtobufReader): ServiceSpec {
  const ports: ServiceSpec['ports'][number][] = [];
  const clusterIPs: string[] = [];
  const spec = { type: '', clusterIP: '', healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1) ports.push(readPort(reader));
    else if (field === 3) spec.clusterIP = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 4) spec.type = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 12) spec.healthCheckNodePort = reader.int32();
    else if (field === 18) clusterIPs.push(reader.text(LONGEST_CLAIM_TEXT));
    if (ports.length > MOST_PORTS) throw new OverBound(`a Service with more than ${MOST_PORTS} ports`);
    if (clusterIPs.length > MOST_CLUSTER_IPS)
      throw new OverBound(`a Service with more than ${MOST_CLUSTER_IPS} clusterIPs`);
  });
  return { ...spec, clusterIPs, ports };
}

function readPort(reader: ProtobufReader): ServiceSpec['ports'][number] {
  const port = { protocol: '', nodePort: 0 };
  reader.message((field) => {
    if (field === 2) port.protocol = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) port.nodePort = reader.int32();
  });
  return port;
}

function listOf<Shape extends z.core.$ZodType>(shape: Shape, most: number) {
  return orEmpty(z.array(shape).check(z.maxLength(most)), []);
}

const whole = orEmpty(z.int(), 0);
const metadata = metadataShape({ [HOLD_OWNER_LABEL]: z.optional(claimText) });
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
