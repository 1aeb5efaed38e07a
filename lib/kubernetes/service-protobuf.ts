import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { type ProtobufReader, readLabel, readTimeMs } from './protobuf.ts';
import { LONGEST_CLAIM_TEXT, MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';

// Field numbers: k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

const LABELS = [Buffer.from(HOLD_OWNER_LABEL)];

/** Reads the fields of a Service that allocation depends on. Throws `MalformedProtobuf` or `OverBound`. */
export function readService(reader: ProtobufReader): ServiceClaim {
  let meta: Meta = { name: '', namespace: '', uid: '', resourceVersion: '', createdAtMs: 0 };
  let spec: Spec = { type: '', clusterIP: '', clusterIPs: [], ports: [], healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1) meta = readMeta(reader);
    else if (field === 2) spec = readSpec(reader);
  });
  return { ...meta, ...spec };
}

type Meta = Pick<ServiceClaim, 'name' | 'namespace' | 'uid' | 'resourceVersion' | 'holdOwner' | 'createdAtMs'>;
type Spec = Omit<ServiceClaim, keyof Meta>;

function readMeta(reader: ProtobufReader): Meta {
  const meta = { name: '', namespace: '', uid: '', resourceVersion: '', createdAtMs: 0 };
  let holdOwner: string | undefined;
  reader.message((field) => {
    if (field === 1) meta.name = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 3) meta.namespace = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) meta.uid = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 6) meta.resourceVersion = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 8) meta.createdAtMs = readTimeMs(reader);
    else if (field === 11) holdOwner = readLabel(reader, LABELS)?.[1] ?? holdOwner;
  });
  return holdOwner === undefined ? meta : { ...meta, holdOwner };
}

function readSpec(reader: ProtobufReader): Spec {
  const ports: Spec['ports'][number][] = [];
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

function readPort(reader: ProtobufReader): Spec['ports'][number] {
  const port = { protocol: '', nodePort: 0 };
  reader.message((field) => {
    if (field === 2) port.protocol = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) port.nodePort = reader.int32();
  });
  return port;
}
