import { canonicalAddress, familyOf } from '../allocator/ip-address.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  type IPAddressRecord,
  type KubernetesObject,
  type ServiceClaim,
} from '../cluster/kubernetes-objects.ts';
import {
  ClusterError,
  type ClusterPort,
  isFaultOfObject,
  type ObjectRef,
  resultOrFault,
} from '../kubernetes/cluster-port.ts';
import { IP_ADDRESS_READER, SERVICE_READER } from '../kubernetes/item-reader.ts';
import {
  type AddressFault,
  type AddressView,
  addressFaults,
  MANAGED_BY_API_SERVERS,
  serviceKey,
} from '../repair/address-faults.ts';
import { type Clocks, isOld } from '../repair/address-turns.ts';
import { eachOf } from '../util/async.ts';
import { defined } from '../util/values.ts';

/** The maximum number of unlisted parents of IPAddresses that a pass reads. */
const MOST_PARENTS = 200;
/** The maximum number of objects that a pass reads at the same time. */
export const READS_AT_ONCE = 8;

/** The Services of a cluster by their {@link serviceKey}. */
export type Services = Map<string, ServiceClaim>;

export function keepService(services: Services, service: ServiceClaim): void {
  services.set(serviceKey(service), { ...service, ports: [] });
}

/** Lists the IPAddresses. Returns `undefined` if the API server does not have this resource (before Kubernetes 1.33). */
export async function readAddresses(kubernetes: ClusterPort): Promise<Map<string, IPAddressRecord> | undefined> {
  const addresses = new Map<string, IPAddressRecord>();
  try {
    for await (const batch of kubernetes.ipAddresses()) {
      for (const address of batch) addresses.set(address.name, address);
    }
    return addresses;
  } catch (error) {
    if (error instanceof ClusterError && error.code === 'Rejected') return undefined;
    throw error;
  }
}

/** Adds absent parents of IPAddresses to `services`, such as headless Services. Otherwise, they would count as missing. */
export async function readParents(
  kubernetes: ClusterPort,
  services: Services,
  records: Iterable<IPAddressRecord>,
): Promise<void> {
  const parents = [...records].map(({ parent }) => serviceKey(parent));
  const unlisted = [...new Set(parents.filter((key) => !services.has(key)))].slice(0, MOST_PARENTS);
  const read = await eachOf(unlisted, READS_AT_ONCE, (key) => resultOrFault(readService(kubernetes, key)));
  for (const service of read) {
    // If a Service cannot be read, `readAgain` reports the error when it reads the fault of the IPAddress again.
    if (service !== undefined && !(service instanceof ClusterError)) keepService(services, service);
  }
}

/** A fault that still exists after a second read of its IPAddress and Service. */
export interface Confirmed {
  readonly fault: AddressFault;
  readonly record?: IPAddressRecord;
  readonly service?: ServiceClaim;
}

/** Returns the fault with the current objects; `undefined` if the fault has ended; a finding if an object cannot be read. */
export async function readAgain(
  kubernetes: ClusterPort,
  listed: AddressFault,
  { isServed, services: before }: AddressView,
  clocks: Clocks,
): Promise<Confirmed | Finding | undefined> {
  const deletes = listed.correction === 'delete' || listed.correction === 'replace';
  try {
    const object = await kubernetes.get({ kind: 'IPAddress', name: listed.item });
    const record = object && IP_ADDRESS_READER.fromJson(object);
    const keys = new Set([listed.other, listed.service, record && serviceKey(record.parent)]);
    const services = await readServices(kubernetes, keys, deletes ? new Map<string, ServiceClaim>() : before);
    const addresses = new Map(record === undefined ? [] : [[record.name, record]]);
    const now = [...addressFaults({ isServed, services, addresses })];
    const fault = now.find((other) => isSameFault(other, listed));
    // A protobuf list shows a time after the year 2106 as an earlier one. The JSON that was just read is right.
    if (fault?.record !== undefined && !isOld(fault.record, clocks)) return undefined;
    const service = services.get(listed.service ?? '');
    return fault && { fault, ...defined({ record, service }) };
  } catch (error) {
    if (!isFaultOfObject(error)) throw error;
    return notCorrected(listed, error);
  }
}

export function notCorrected({ item, service, correction }: AddressFault, error: ClusterError): Finding {
  const message = `IPAddress ${item} is not corrected (${correction}): ${error.message}`;
  return { type: 'notCorrected', message, item, ...defined({ service }) };
}

/** @param known the listed Services. If a Service cannot be read by itself, its addresses in the list are used. */
async function readServices(
  kubernetes: ClusterPort,
  keys: ReadonlySet<string | undefined>,
  known: AddressView['services'],
): Promise<Services> {
  const services: Services = new Map();
  for (const key of keys) {
    const read = await resultOrFault(readService(kubernetes, key));
    const service = read instanceof ClusterError ? known.get(key ?? '') : read;
    if (service === undefined && read instanceof ClusterError) throw read;
    if (service !== undefined) services.set(serviceKey(service), inOneSpelling(service));
  }
  return services;
}

async function readService(kubernetes: ClusterPort, key: string | undefined): Promise<ServiceClaim | undefined> {
  const [namespace = '', name = ''] = key?.split('/') ?? [];
  if (namespace === '' || name === '') return undefined;
  const ref: ObjectRef = { kind: 'Service', namespace, name };
  const object = await kubernetes.get(ref);
  return object && SERVICE_READER.fromJson(object);
}

/**
 * Returns the Service with its addresses in canonical form. If an address has another spelling, upstream deletes the IPAddress
 * and creates it again at once. Passes keep the IPAddress: otherwise another Service could get the address.
 */
function inOneSpelling(service: ServiceClaim): ServiceClaim {
  return { ...service, clusterIPs: service.clusterIPs.map((text) => canonicalAddress(text) ?? text) };
}

function isSameFault(one: AddressFault, other: AddressFault): boolean {
  const key = ({ item, service, correction, type, record }: AddressFault) =>
    [item, service, correction, type, record?.uid].join(' ');
  return key(one) === key(other);
}

/** Corrects a fault. Returns the change; `undefined` if no correction exists, after a conflict, or if writes are not allowed. */
export async function correct(
  kubernetes: ClusterPort,
  { fault, record, service }: Confirmed,
): Promise<string | undefined> {
  const { item, correction } = fault;
  const owner = service === undefined ? '' : ` for Service ${serviceKey(service)}`;
  switch (correction) {
    case 'none':
      return undefined;
    case 'create':
      return (await create(kubernetes, item, service)) ? `created IPAddress ${item}${owner}` : undefined;
    case 'replace': {
      // The reference is immutable. If a policy refuses the new IPAddress, this first call throws before the old one is
      // deleted. Otherwise the API server answers that the IPAddress exists.
      const isCreated = await create(kubernetes, item, service);
      const isFree = !isCreated && record !== undefined && (await remove(kubernetes, record));
      const isReplaced = isCreated || (isFree && (await create(kubernetes, item, service)));
      return isReplaced ? `replaced IPAddress ${item}${owner}` : undefined;
    }
    case 'relabel':
      return record && (await relabel(kubernetes, record)) ? `corrected the labels of IPAddress ${item}` : undefined;
    case 'delete':
      return record && (await remove(kubernetes, record)) ? `deleted IPAddress ${item}` : undefined;
  }
}

/** Returns false if another writer, such as an API server, created the IPAddress first. The next pass checks that IPAddress. */
async function create(kubernetes: ClusterPort, item: string, service: ServiceClaim | undefined): Promise<boolean> {
  if (service === undefined) return false;
  const { namespace, name } = service;
  const object = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: { name: item, labels: labelsOf(item) },
    spec: { parentRef: { group: '', resource: 'services', namespace, name } },
  };
  const result = await kubernetes.create<KubernetesObject>(object);
  if ('message' in result) throw new ClusterError('Rejected', result.message);
  return result.outcome === 'created';
}

async function remove(kubernetes: ClusterPort, { name, uid, resourceVersion }: IPAddressRecord): Promise<boolean> {
  const metadata = { name, uid, resourceVersion };
  return (await kubernetes.delete({ apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata })) === 'deleted';
}

async function relabel(kubernetes: ClusterPort, { name, uid, resourceVersion }: IPAddressRecord): Promise<boolean> {
  const patch = { metadata: { uid, resourceVersion, labels: labelsOf(name) } };
  return (await kubernetes.mergePatch({ kind: 'IPAddress', name }, patch)).outcome === 'updated';
}

function labelsOf(item: string): Readonly<Record<string, string>> {
  return { [FAMILY_LABEL]: familyOf(item) ?? '', [ADDRESS_MANAGED_BY_LABEL]: MANAGED_BY_API_SERVERS };
}
