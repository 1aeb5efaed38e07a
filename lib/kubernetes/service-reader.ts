import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { BOUNDS, LONGEST_TEXT } from '../util/bounds.ts';
import {
  asRecord,
  type Changing,
  type ItemReader,
  int32In,
  listIn,
  metadataIn,
  recordIn,
  textIn,
  textOf,
  tooManyEntries,
} from './item-reader.ts';
import type { ProtobufReader } from './protobuf.ts';

type NodePort = ServiceClaim['ports'][number];

const MOST_PORTS = BOUNDS.Service['node ports'];
const MOST_CLUSTER_IPS = BOUNDS.Service['cluster IPs'];

/** Reads the fields of a Service that allocation depends on. */
export const SERVICE_READER: ItemReader<ServiceClaim> = {
  kind: 'Service',
  fromProtobuf: readService,
  fromJson: (object) => {
    const service = asRecord(object, 'Service');
    const metadata = recordIn(service, 'metadata');
    const labels = recordIn(metadata, 'labels');
    const spec = recordIn(service, 'spec');
    const isHolding = (labels[HOLD_OWNER_LABEL] ?? undefined) !== undefined;
    return {
      ...metadataIn(metadata),
      namespace: textIn(metadata, 'namespace'),
      type: textIn(spec, 'type'),
      clusterIP: textIn(spec, 'clusterIP'),
      clusterIPs: listIn(spec, 'clusterIPs', MOST_CLUSTER_IPS).map((text) => textOf(text, 'clusterIPs')),
      ports: nodePortsIn(listIn(spec, 'ports')),
      healthCheckNodePort: int32In(spec, 'healthCheckNodePort'),
      ...(isHolding && { holdOwner: textIn(labels, HOLD_OWNER_LABEL) }),
    };
  },
  entriesOf: ({ ports, clusterIPs }) => ports.length + clusterIPs.length,
};

function nodePortsIn(list: readonly unknown[]): readonly NodePort[] {
  const ports = list.map((each) => {
    const port = asRecord(each, 'ports');
    return { protocol: textIn(port, 'protocol'), nodePort: int32In(port, 'nodePort') };
  });
  const nodePorts = ports.filter(({ nodePort }) => nodePort !== 0);
  if (nodePorts.length > MOST_PORTS) throw tooManyEntries(MOST_PORTS, 'ports with a node port');
  return nodePorts;
}

// Field numbers: k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

function readService(reader: ProtobufReader, previous: ServiceClaim | undefined): ServiceClaim {
  const claim: Changing<ServiceClaim> = {
    name: '',
    namespace: '',
    uid: '',
    resourceVersion: '',
    ports: [],
    clusterIP: '',
    type: '',
    healthCheckNodePort: 0,
    clusterIPs: [],
    createdAtMs: 0,
  };
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readMetadata(reader, claim, previous?.namespace);
    else if (field === 2) readSpec(reader, claim);
  }
  return claim;
}

function readMetadata(
  reader: ProtobufReader,
  claim: Changing<ServiceClaim>,
  likelyNamespace: string | undefined,
): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) claim.name = reader.text(LONGEST_TEXT);
    else if (field === 3) claim.namespace = reader.text(LONGEST_TEXT, likelyNamespace);
    else if (field === 5) claim.uid = reader.text(LONGEST_TEXT);
    else if (field === 6) claim.resourceVersion = reader.text(LONGEST_TEXT);
    else if (field === 8) claim.createdAtMs = reader.timeMs();
    else if (field === 11) readLabel(reader, claim);
  }
}

function readLabel(reader: ProtobufReader, claim: Changing<ServiceClaim>): void {
  let isHoldOwner = false;
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    // The key of a label comes before its value.
    if (field === 1) isHoldOwner = reader.isText(HOLD_OWNER_LABEL);
    else if (field === 2 && isHoldOwner) claim.holdOwner = reader.text(LONGEST_TEXT);
  }
}

function readSpec(reader: ProtobufReader, claim: Changing<ServiceClaim>): void {
  const ports: NodePort[] = [];
  const clusterIPs: string[] = [];
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readPort(reader, ports);
    else if (field === 3) claim.clusterIP = reader.text(LONGEST_TEXT);
    else if (field === 4) claim.type = reader.text(LONGEST_TEXT, 'ClusterIP');
    else if (field === 12) claim.healthCheckNodePort = reader.int32();
    else if (field === 18) {
      clusterIPs.push(reader.text(LONGEST_TEXT, claim.clusterIP));
      if (clusterIPs.length > MOST_CLUSTER_IPS) throw tooManyEntries(MOST_CLUSTER_IPS, 'clusterIPs');
    }
  }
  claim.ports = ports;
  claim.clusterIPs = clusterIPs;
}

function readPort(reader: ProtobufReader, ports: NodePort[]): void {
  let protocol = '';
  let nodePort = 0;
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) protocol = reader.text(LONGEST_TEXT, 'TCP');
    else if (field === 5) nodePort = reader.int32();
  }
  if (nodePort !== 0) ports.push({ protocol, nodePort });
  if (ports.length > MOST_PORTS) throw tooManyEntries(MOST_PORTS, 'ports with a node port');
}
