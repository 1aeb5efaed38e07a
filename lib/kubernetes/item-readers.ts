import * as z from 'zod/mini';
import { LONGEST_TEXT } from '../cluster/bounds.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  HOLD_OWNER_LABEL,
  type IPAddressRecord,
  type ServiceClaim,
} from '../cluster/kubernetes-objects.ts';
import type { ClusterPort, Kind } from './cluster-port.ts';
import { type ProtobufReader, readMeta } from './protobuf.ts';
import { MOST_CLUSTER_IPS, MOST_PORTS, OverBound } from './reply-bounds.ts';

/** Reads the objects of one kind, from protobuf and from JSON. */
export interface ItemReader<Item> {
  readonly kind: Kind;
  readonly fromProtobuf: (reader: ProtobufReader) => Item;
  /** Throws `MalformedItem` or `OverBound`. */
  readonly fromJson: (object: unknown) => Item;
  /** Counts the ports and cluster IPs of a Service. */
  readonly entriesOf?: (item: Item) => number;
}

export class MalformedItem extends Error {
  override readonly name = 'MalformedItem';
}

/** Returns a shape that accepts an absent or null field as empty. */
function orEmpty<Shape extends z.core.$ZodType>(shape: Shape, empty: unknown) {
  return z.pipe(
    z.transform((value: unknown) => value ?? empty),
    shape,
  );
}

const claimText = orEmpty(z.string().check(z.maxLength(LONGEST_TEXT)), '');

/** A time such as `2026-01-02T03:04:05Z` in milliseconds; 0 if absent. */
const creationMs = z.pipe(
  claimText,
  z.transform((text: string) => Date.parse(text) || 0),
);

function metadataShape<Labels extends z.core.$ZodShape>(labels: Labels) {
  return z.object({
    name: claimText,
    namespace: claimText,
    uid: claimText,
    resourceVersion: claimText,
    creationTimestamp: creationMs,
    labels: orEmpty(z.object(labels), {}),
  });
}

/**
 * Reads an object from JSON. Throws `MalformedItem` or `OverBound`. A field of the wrong type is an error and never gets a
 * default, because an address that is not read would count as free.
 */
function readJsonItem<Shape extends z.ZodMiniType>(shape: Shape, kind: Kind, object: unknown): z.infer<Shape> {
  const { data, error } = shape.safeParse(object);
  if (error === undefined) return data;
  const [issue] = error.issues;
  const place = issue?.path.join('.');
  if (issue?.code === 'too_big')
    throw new OverBound(`a ${kind} with more than ${issue.maximum} entries or characters in ${place}`);
  throw new MalformedItem(`${place} of a ${kind} has the wrong type`);
}

// Field numbers: k8s.io/api/{core,networking}/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

const SERVICE_LABELS = [Buffer.from(HOLD_OWNER_LABEL)];

type ServiceSpec = Pick<ServiceClaim, 'type' | 'clusterIP' | 'clusterIPs' | 'ports' | 'healthCheckNodePort'>;

/** Reads the fields of a Service that allocation depends on. Throws `MalformedProtobuf` or `OverBound`. */
function readService(reader: ProtobufReader): ServiceClaim {
  let meta = { name: '', namespace: '', uid: '', resourceVersion: '', createdAtMs: 0 };
  let holdOwner: string | undefined;
  let claims: ServiceSpec = { type: '', clusterIP: '', clusterIPs: [], ports: [], healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1)
      ({
        labels: [holdOwner],
        ...meta
      } = readMeta(reader, SERVICE_LABELS));
    else if (field === 2) claims = readServiceSpec(reader);
  });
  return { ...meta, ...claims, ...(holdOwner !== undefined && { holdOwner }) };
}

function readServiceSpec(reader: ProtobufReader): ServiceSpec {
  const ports: ServiceSpec['ports'][number][] = [];
  const clusterIPs: string[] = [];
  const spec = { type: '', clusterIP: '', healthCheckNodePort: 0 };
  reader.message((field) => {
    if (field === 1) ports.push(readPort(reader));
    else if (field === 3) spec.clusterIP = reader.text(LONGEST_TEXT);
    else if (field === 4) spec.type = reader.text(LONGEST_TEXT);
    else if (field === 12) spec.healthCheckNodePort = reader.int32();
    else if (field === 18) clusterIPs.push(reader.text(LONGEST_TEXT));
    if (ports.length > MOST_PORTS) throw new OverBound(`a Service with more than ${MOST_PORTS} ports`);
    if (clusterIPs.length > MOST_CLUSTER_IPS)
      throw new OverBound(`a Service with more than ${MOST_CLUSTER_IPS} clusterIPs`);
  });
  return { ...spec, clusterIPs, ports };
}

function readPort(reader: ProtobufReader): ServiceSpec['ports'][number] {
  const port = { protocol: '', nodePort: 0 };
  reader.message((field) => {
    if (field === 2) port.protocol = reader.text(LONGEST_TEXT);
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

/** Returns every Service of the cluster, for commands. A pass reads the Services one by one instead. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  const services: ServiceClaim[] = [];
  for await (const one of port.services()) {
    services.push(one);
  }
  return services;
}

const ADDRESS_LABELS = [Buffer.from(FAMILY_LABEL), Buffer.from(ADDRESS_MANAGED_BY_LABEL)];
const NO_PARENT = { group: '', resource: '', namespace: '', name: '' };

function readIpAddress(reader: ProtobufReader): IPAddressRecord {
  let meta: Omit<IPAddressRecord, 'parent'> | undefined;
  let parent: IPAddressRecord['parent'] = NO_PARENT;
  reader.message((field) => {
    if (field === 1) {
      const { namespace: _, labels, ...names } = readMeta(reader, ADDRESS_LABELS);
      meta = { ...names, family: labels[0] ?? '', managedBy: labels[1] ?? '' };
    } else if (field === 2) parent = readParent(reader);
  });
  const none = { name: '', uid: '', resourceVersion: '', createdAtMs: 0, family: '', managedBy: '' };
  return { ...(meta ?? none), parent };
}

function readParent(reader: ProtobufReader): IPAddressRecord['parent'] {
  const parent = { ...NO_PARENT };
  const readField = (field: number) => {
    if (field === 1) parent.group = reader.text(LONGEST_TEXT);
    else if (field === 2) parent.resource = reader.text(LONGEST_TEXT);
    else if (field === 3) parent.namespace = reader.text(LONGEST_TEXT);
    else if (field === 4) parent.name = reader.text(LONGEST_TEXT);
  };
  reader.message((field) => {
    if (field === 1) reader.message(readField);
  });
  return parent;
}

const parentRef = z.object({ group: claimText, resource: claimText, namespace: claimText, name: claimText });
const ipAddress = z.object({
  metadata: metadataShape({ [FAMILY_LABEL]: claimText, [ADDRESS_MANAGED_BY_LABEL]: claimText }),
  spec: orEmpty(z.object({ parentRef: orEmpty(parentRef, {}) }), {}),
});

export function ipAddressInJson(object: unknown): IPAddressRecord {
  const { metadata, spec } = readJsonItem(ipAddress, 'IPAddress', object);
  const { namespace: _, labels, creationTimestamp: createdAtMs, ...names } = metadata;
  const { [FAMILY_LABEL]: family, [ADDRESS_MANAGED_BY_LABEL]: managedBy } = labels;
  return { ...names, createdAtMs, family, managedBy, parent: spec.parentRef };
}

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = {
  kind: 'IPAddress',
  fromProtobuf: readIpAddress,
  fromJson: ipAddressInJson,
};
