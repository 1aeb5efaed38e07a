import type { V1IPAddress } from '@kubernetes/client-node';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  HOLD_OWNER_LABEL,
  type IPAddressRecord,
  type KubernetesObject,
  type ServiceClaim,
  type WholeObject,
} from '../cluster/kubernetes-objects.ts';
import type { ServiceObject } from '../cluster/published-objects.ts';
import { BOUNDS, LONGEST_TEXT, longTextIn } from '../util/bounds.ts';
import { defined } from '../util/values.ts';
import type { ClusterPort, Kind } from './cluster-port.ts';
import type { ProtobufReader } from './protobuf.ts';
import { OverBound } from './reply-bounds.ts';

/** Reads the objects of one kind. Reads only the fields of an `Item`, and limits only their size. Skips other fields of any size. */
export interface ItemReader<Item> {
  readonly kind: Kind;
  /**
   * Reads the protobuf message of one object. Throws `MalformedProtobuf` or `OverBound`.
   * @param previous the previous item of the list, whose texts are reused where they are equal
   */
  readonly fromProtobuf: (reader: ProtobufReader, previous: Item | undefined) => Item;
  /** Reads an object whose field types `wrongField` has already checked. Throws `OverBound`. */
  readonly fromJson: (object: KubernetesObject) => Item;
  readonly entriesOf?: (item: Item) => number;
}

type Changing<Value> = { -readonly [Field in keyof Value]: Value[Field] };

function metadataOf({ metadata }: KubernetesObject) {
  const { name, uid = '', resourceVersion = '', creationTimestamp = '' } = metadata;
  return { name, uid, resourceVersion, createdAtMs: Date.parse(creationTimestamp) || 0 };
}

function withShortTexts<Item>(item: Item): Item {
  const place = longTextIn(item);
  if (place === undefined) return item;
  throw new OverBound(`more than ${LONGEST_TEXT} characters in ${place}`);
}

type NodePort = ServiceClaim['ports'][number];
type ClaimDraft = Changing<ServiceClaim> & { readonly ports: NodePort[]; readonly clusterIPs: string[] };
type Metadata = Changing<Pick<ServiceClaim, 'name' | 'uid' | 'resourceVersion' | 'createdAtMs'>> & {
  namespace?: string;
};

/** Reads the fields of a Service that allocation depends on. */
export const SERVICE_READER: ItemReader<ServiceClaim> = {
  kind: 'Service',
  fromProtobuf: readService,
  fromJson: (service) => {
    const { metadata, spec } = service as ServiceObject;
    const claim = {
      ...metadataOf(service),
      namespace: metadata.namespace ?? '',
      type: spec.type ?? '',
      clusterIP: spec.clusterIP ?? '',
      clusterIPs: spec.clusterIPs ?? [],
      ports: (spec.ports ?? [])
        .map(({ protocol = '', nodePort = 0 }) => ({ protocol, nodePort }))
        .filter(({ nodePort }) => nodePort !== 0),
      healthCheckNodePort: spec.healthCheckNodePort ?? 0,
      ...defined({ holdOwner: metadata.labels?.[HOLD_OWNER_LABEL] }),
    };
    return withShortTexts(withFewEntries(claim));
  },
  entriesOf: ({ ports, clusterIPs }) => ports.length + clusterIPs.length,
};

function withFewEntries(claim: ServiceClaim): ServiceClaim {
  const { 'node ports': mostPorts, 'cluster IPs': mostClusterIPs } = BOUNDS.Service;
  if (claim.ports.length > mostPorts) throw new OverBound(`more than ${mostPorts} entries in ports with a node port`);
  if (claim.clusterIPs.length > mostClusterIPs)
    throw new OverBound(`more than ${mostClusterIPs} entries in clusterIPs`);
  return claim;
}

type Parent = IPAddressRecord['parent'];

const NO_PARENT: Parent = { group: '', resource: '', namespace: '', name: '' };

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = {
  kind: 'IPAddress',
  fromProtobuf: readIpAddress,
  fromJson: (ipAddress) => {
    const { metadata, spec } = ipAddress as WholeObject<V1IPAddress>;
    const { labels = {} } = metadata;
    const { parentRef = NO_PARENT } = spec ?? {};
    // API servers allow texts of any length in a parentRef. Names of Services are never cut.
    const start = (field: keyof Parent) => (parentRef[field] ?? '').slice(0, LONGEST_TEXT);
    return withShortTexts({
      ...metadataOf(ipAddress),
      family: labels[FAMILY_LABEL] ?? '',
      managedBy: labels[ADDRESS_MANAGED_BY_LABEL] ?? '',
      parent: {
        group: start('group'),
        resource: start('resource'),
        namespace: start('namespace'),
        name: start('name'),
      },
    });
  },
};

// Field numbers: generated.proto in k8s.io/api/core/v1, k8s.io/api/networking/v1 and k8s.io/apimachinery/pkg/apis/meta/v1.

function readService(reader: ProtobufReader, previous: ServiceClaim | undefined): ServiceClaim {
  const claim: ClaimDraft = {
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
    if (field === 1) readMetadata(reader, claim, readHoldOwner, previous?.namespace);
    else if (field === 2) readServiceSpec(reader, claim);
  }
  return claim;
}

function readMetadata<Item extends Metadata>(
  reader: ProtobufReader,
  item: Item,
  readLabel: (reader: ProtobufReader, item: Item) => void,
  likelyNamespace?: string,
): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) item.name = reader.text(LONGEST_TEXT);
    else if (field === 3 && item.namespace !== undefined) item.namespace = reader.text(LONGEST_TEXT, likelyNamespace);
    else if (field === 5) item.uid = reader.text(LONGEST_TEXT);
    else if (field === 6) item.resourceVersion = reader.text(LONGEST_TEXT);
    else if (field === 8) item.createdAtMs = reader.timeMs();
    else if (field === 11) readLabel(reader, item);
  }
}

function readHoldOwner(reader: ProtobufReader, claim: ClaimDraft): void {
  let isHoldOwner = false;
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    // The key of a label comes before its value.
    if (field === 1) isHoldOwner = reader.isText(HOLD_OWNER_LABEL);
    else if (field === 2 && isHoldOwner) claim.holdOwner = reader.text(LONGEST_TEXT);
  }
}

function readServiceSpec(reader: ProtobufReader, claim: ClaimDraft): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readPort(reader, claim.ports);
    else if (field === 3) claim.clusterIP = reader.text(LONGEST_TEXT);
    else if (field === 4) claim.type = reader.text(LONGEST_TEXT, 'ClusterIP');
    else if (field === 12) claim.healthCheckNodePort = reader.int32();
    else if (field === 18) claim.clusterIPs.push(reader.text(LONGEST_TEXT, claim.clusterIP));
    withFewEntries(claim);
  }
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
}

function readIpAddress(reader: ProtobufReader, previous: IPAddressRecord | undefined): IPAddressRecord {
  const record: Changing<IPAddressRecord> = {
    name: '',
    uid: '',
    resourceVersion: '',
    createdAtMs: 0,
    family: '',
    managedBy: '',
    parent: NO_PARENT,
  };
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readMetadata(reader, record, readAddressLabel);
    else if (field === 2) readAddressSpec(reader, record, previous?.parent ?? NO_PARENT);
  }
  return record;
}

function readAddressLabel(reader: ProtobufReader, record: Changing<IPAddressRecord>): void {
  let key = '';
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    // The key of a label comes before its value.
    if (field === 1) key = reader.textStart(LONGEST_TEXT, ADDRESS_MANAGED_BY_LABEL);
    else if (field === 2 && key === FAMILY_LABEL) record.family = reader.text(LONGEST_TEXT, 'IPv4');
    else if (field === 2 && key === ADDRESS_MANAGED_BY_LABEL) record.managedBy = reader.text(LONGEST_TEXT);
  }
}

function readAddressSpec(reader: ProtobufReader, record: Changing<IPAddressRecord>, likely: Parent): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) record.parent = readParent(reader, likely);
  }
}

function readParent(reader: ProtobufReader, likely: Parent): Parent {
  const parent = { ...NO_PARENT };
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) parent.group = reader.textStart(LONGEST_TEXT);
    else if (field === 2) parent.resource = reader.textStart(LONGEST_TEXT, likely.resource);
    else if (field === 3) parent.namespace = reader.textStart(LONGEST_TEXT, likely.namespace);
    else if (field === 4) parent.name = reader.textStart(LONGEST_TEXT);
  }
  return parent;
}

/** Returns every Service of the cluster, for commands. A pass reads the Services batch by batch instead. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  return (await Array.fromAsync(port.services())).flat();
}
