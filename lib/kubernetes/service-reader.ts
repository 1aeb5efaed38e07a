import { HOLD_OWNER_LABEL, type ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { BOUNDS, LONGEST_TEXT } from '../util/bounds.ts';
import { type ItemReader, int32, labelsOf, listOf, METADATA, messageOf, readerOf, text, time } from './item-readers.ts';
import type { ProtobufReader } from './protobuf.ts';
import { OverBound } from './reply-bounds.ts';

type Changing<Value> = { -readonly [Field in keyof Value]: Value[Field] };
type Port = ServiceClaim['ports'][number];

const MOST_PORTS = BOUNDS.Service['spec.ports'];
const MOST_CLUSTER_IPS = BOUNDS.Service['spec.clusterIPs'];

const service = messageOf({
  metadata: [1, messageOf({ ...METADATA, labels: [11, labelsOf(HOLD_OWNER_LABEL)] })],
  spec: [
    2,
    messageOf({
      ports: [1, listOf(messageOf({ protocol: [2, text], nodePort: [5, int32] }), MOST_PORTS)],
      clusterIP: [3, text],
      type: [4, text],
      healthCheckNodePort: [12, int32],
      clusterIPs: [18, listOf(text, MOST_CLUSTER_IPS)],
    }),
  ],
});

/**
 * Reads the fields of a Service that allocation depends on. A list has up to a hundred thousand Services, so protobuf is not read
 * by the declaration above, which looks up a reader for each field, but by the functions below. A test compares both.
 */
export const SERVICE_READER: ItemReader<ServiceClaim> = {
  ...readerOf('Service', service, ({ metadata, spec }) => {
    const { name, namespace, uid, resourceVersion, creationTimestamp: createdAtMs, labels } = metadata;
    const holdOwner = labels[HOLD_OWNER_LABEL];
    const claim = { name, namespace, uid, resourceVersion, ...spec, createdAtMs };
    return holdOwner === undefined ? claim : { ...claim, holdOwner };
  }),
  fromProtobuf: decodeService,
  entriesOf: ({ ports, clusterIPs }) => ports.length + clusterIPs.length,
};

function decodeService(reader: ProtobufReader): ServiceClaim {
  const claim: Changing<ServiceClaim> = {
    name: '',
    namespace: '',
    uid: '',
    resourceVersion: '',
    ports: [],
    clusterIP: '',
    type: '',
    healthCheckNodePort: int32.empty,
    clusterIPs: [],
    createdAtMs: time.empty,
  };
  const outerEnd = reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) decodeMetadata(reader, claim);
    else if (field === 2) decodeSpec(reader, claim);
    else reader.skip();
  }
  reader.leave(outerEnd);
  return claim;
}

function decodeMetadata(reader: ProtobufReader, claim: Changing<ServiceClaim>): void {
  const outerEnd = reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) claim.name = reader.text(LONGEST_TEXT);
    else if (field === 3) claim.namespace = reader.text(LONGEST_TEXT);
    else if (field === 5) claim.uid = reader.text(LONGEST_TEXT);
    else if (field === 6) claim.resourceVersion = reader.text(LONGEST_TEXT);
    else if (field === 8) claim.createdAtMs = time.fromProtobuf(reader, time.empty, 'creationTimestamp');
    else if (field === 11) decodeLabel(reader, claim);
    else reader.skip();
  }
  reader.leave(outerEnd);
}

function decodeLabel(reader: ProtobufReader, claim: Changing<ServiceClaim>): void {
  let isHoldOwner = false;
  const outerEnd = reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    // The key of an entry comes before its value.
    if (field === 1) isHoldOwner = reader.isText(HOLD_OWNER_LABEL);
    else if (field === 2 && isHoldOwner) claim.holdOwner = reader.text(LONGEST_TEXT);
    else reader.skip();
  }
  reader.leave(outerEnd);
}

function decodeSpec(reader: ProtobufReader, claim: Changing<ServiceClaim>): void {
  const ports: Port[] = [];
  const clusterIPs: string[] = [];
  const outerEnd = reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) addTo(ports, portIn(reader), MOST_PORTS, 'ports');
    else if (field === 3) claim.clusterIP = reader.text(LONGEST_TEXT);
    else if (field === 4) claim.type = reader.text(LONGEST_TEXT, 'ClusterIP');
    else if (field === 12) claim.healthCheckNodePort = reader.int32();
    else if (field === 18) {
      addTo(clusterIPs, reader.text(LONGEST_TEXT, claim.clusterIP), MOST_CLUSTER_IPS, 'clusterIPs');
    } else reader.skip();
  }
  reader.leave(outerEnd);
  claim.ports = ports;
  claim.clusterIPs = clusterIPs;
}

function portIn(reader: ProtobufReader): Port {
  let protocol = '';
  let nodePort = 0;
  const outerEnd = reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) protocol = reader.text(LONGEST_TEXT, 'TCP');
    else if (field === 5) nodePort = reader.int32();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { protocol, nodePort };
}

function addTo<Item>(items: Item[], item: Item, most: number, name: string): void {
  items.push(item);
  if (items.length > most) throw new OverBound(`more than ${most} entries in ${name}`);
}
