import { canonicalAddress, familyOf } from '../allocator/ip-address.ts';
import { eachOf } from '../cluster/async.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  type IPAddressRecord,
  type KubernetesObject,
  type ServiceClaim,
} from '../cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort, type ObjectRef } from '../kubernetes/cluster-port.ts';
import { IP_ADDRESS_READER, SERVICE_READER } from '../kubernetes/item-readers.ts';
import { listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { HOLDS_SELECTOR, holdIn, MANAGED_BY_HOLDS } from '../range/held-address.ts';
import { isSurelyOver } from '../range/hold.ts';
import {
  type AddressFault,
  type AddressView,
  addressFaults,
  MANAGED_BY_API_SERVERS,
  serviceKey,
} from '../repair/ip-addresses.ts';
import { fullFamilies, serviceCidrUsage } from '../repair/service-cidr-usage.ts';
import { plainValue } from '../table/stored-item.ts';
import type { PassContext, PassReport } from './pass.ts';

/**
 * The maximum number of faults that one pass reports and corrects. Further faults are only counted, and later passes report and
 * correct them.
 */
const MOST_FAULTS = 200;
const READS_AT_ONCE = 8;

/** Matches the count names of the spec's ranges, such as `allocated`. The report has the counts of the ServiceCIDRs instead. */
const FIGURES_OF_RANGES = /^(secondary)?(allocated|free|capacity)$/i;

/**
 * In a cluster with IPAddresses, findings about IPAddresses replace findings of these types, because only IPAddresses are checked
 * against all ServiceCIDRs.
 */
const CLAIM_FINDINGS: ReadonlySet<FindingType> = new Set(['duplicate', 'outOfRange', 'invalid']);

/** The Services of a cluster by their {@link serviceKey}. */
export type Services = Map<string, ServiceClaim>;

/** Keeps the parts of a Service that the repair needs. */
export function keepService(services: Services, service: ServiceClaim): void {
  services.set(serviceKey(service), { ...service, ports: [] });
}

/**
 * Repairs IPAddresses, if the cluster's own API servers allocate. A Service or an IPAddress may change between the two lists:
 * a fault is read again before it is reported, and an object is deleted only if it has not changed since it was read.
 * @returns the report with the usage of the ServiceCIDRs, and with findings about IPAddresses if the cluster has them
 */
export async function repairAddresses(
  context: PassContext,
  cidrs: readonly ServiceCidr[],
  services: Services,
  report: PassReport,
): Promise<PassReport> {
  const { kubernetes } = context;
  try {
    const addresses = await readAddresses(kubernetes);
    await readParents(kubernetes, services, addresses?.values() ?? []);
    const counted = withUsage(report, cidrs, services, addresses?.keys() ?? []);
    if (addresses === undefined) return counted;
    const repaired = await withFaults(counted, context, cidrs, { services, addresses });
    const isAnyHeld = [...addresses.values()].some(({ managedBy }) => managedBy === MANAGED_BY_HOLDS);
    return isAnyHeld ? await endHolds(repaired, context) : repaired;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    if (error.code !== 'Forbidden') return { ...report, errors: [...report.errors, error] };
    const message = `IPAddresses are not checked: ${error.message}. Apply deploy/rbac.yaml.`;
    const counted = withUsage(report, cidrs, services, []);
    return { ...counted, findings: [...counted.findings, { type: 'other', message, item: 'ipaddresses' }] };
  }
}

/** An address with an IPAddress counts as used even without a Service, because API servers do not allocate it. */
function withUsage(
  report: PassReport,
  cidrs: readonly ServiceCidr[],
  services: Services,
  recorded: Iterable<string>,
): PassReport {
  const claimed = [...services.values()].flatMap(({ clusterIPs }) => clusterIPs);
  const usage = serviceCidrUsage(cidrs, [...recorded, ...claimed]);
  const [primary, secondary] = usage.sums;
  const counts = Object.entries(report.counts).filter(([name]) => !FIGURES_OF_RANGES.test(name));
  return {
    ...report,
    findings: [...report.findings.filter(({ type }) => type !== 'nothingFree'), ...fullFamilies(usage)],
    counts: {
      ...Object.fromEntries(counts),
      ...(primary && { allocated: primary.used, capacity: primary.capacity }),
      ...(secondary && { secondaryAllocated: secondary.used, secondaryCapacity: secondary.capacity }),
    },
    state: plainValue(usage),
  };
}

/** Reads the Services that only IPAddresses name, such as headless ones, because findings name these Services. */
async function readParents(
  kubernetes: ClusterPort,
  services: Services,
  records: Iterable<IPAddressRecord>,
): Promise<void> {
  const unlisted = new Set<string>();
  for (const { parent } of records) {
    if (unlisted.size === MOST_FAULTS) break;
    if (!services.has(serviceKey(parent))) unlisted.add(serviceKey(parent));
  }
  const read = await eachOf([...unlisted], READS_AT_ONCE, (key) => readService(kubernetes, key));
  for (const service of read) if (service !== undefined) keepService(services, service);
}

async function withFaults(
  report: PassReport,
  { kubernetes, nowMs, spec }: PassContext,
  cidrs: readonly ServiceCidr[],
  read: Pick<AddressView, 'services' | 'addresses'>,
): Promise<PassReport> {
  const isInitial = servedAddresses(cidrs);
  const { listed, unlisted } = firstOf(addressFaults({ ...read, nowMs: nowMs(), isServed: isInitial }));
  // Services may have addresses of ServiceCIDRs that were created during the pass.
  const isNew = listed.some(({ type }) => type === 'outOfRange')
    ? servedAddresses(await listServiceCidrs(kubernetes))
    : () => false;
  const isServed = (address: string) => isInitial(address) || isNew(address);
  const confirmed = await eachOf(listed, READS_AT_ONCE, (fault) => readAgain(kubernetes, fault, { nowMs, isServed }));
  const faults = confirmed.filter((fault) => fault !== undefined);
  const { ipAddresses } = spec.repair;
  const changes = [...report.changes];
  for (const fault of ipAddresses ? faults : []) {
    const change = await correct(kubernetes, fault);
    if (change !== undefined) changes.push(change);
  }
  const isKept = (type: FindingType) => !CLAIM_FINDINGS.has(type);
  return {
    ...report,
    changes,
    findings: [
      ...report.findings.filter(({ type }) => isKept(type)),
      ...faults.flatMap(({ fault }) => findingOf(fault, ipAddresses)),
    ],
    unlisted: new Map([...[...(report.unlisted ?? [])].filter(([type]) => isKept(type)), ...unlisted]),
    counts: { ...report.counts, ipAddresses: read.addresses.size },
  };
}

/** Returns the fault with the current objects; `undefined` if it no longer exists. */
async function readAgain(
  kubernetes: ClusterPort,
  listed: AddressFault,
  { nowMs, isServed }: Pick<PassContext, 'nowMs'> & Pick<AddressView, 'isServed'>,
): Promise<Confirmed | undefined> {
  const object = await kubernetes.get({ kind: 'IPAddress', name: listed.item });
  const record = object && IP_ADDRESS_READER.fromJson(object);
  const keys = new Set([listed.other, listed.service, record && serviceKey(record.parent)]);
  const services: Services = new Map();
  for (const key of keys) {
    const service = await readService(kubernetes, key);
    if (service !== undefined) services.set(serviceKey(service), inOneSpelling(service));
  }
  const addresses = new Map(record === undefined ? [] : [[record.name, record]]);
  const now = [...addressFaults({ isServed, nowMs: nowMs(), services, addresses })];
  const fault = now.find((other) => isSameFault(other, listed));
  const service = services.get(listed.service ?? '');
  return fault && { fault, ...(record && { record }), ...(service && { service }) };
}

interface Confirmed {
  readonly fault: AddressFault;
  readonly record?: IPAddressRecord;
  readonly service?: ServiceClaim;
}

/** Lists the IPAddresses. Returns `undefined` if the API server does not have this resource (before Kubernetes 1.33). */
async function readAddresses(kubernetes: ClusterPort): Promise<Map<string, IPAddressRecord> | undefined> {
  const addresses = new Map<string, IPAddressRecord>();
  try {
    for await (const address of kubernetes.ipAddresses()) addresses.set(address.name, address);
    return addresses;
  } catch (error) {
    if (error instanceof ClusterError && error.code === 'Rejected') return undefined;
    throw error;
  }
}

function firstOf(faults: Iterable<AddressFault>) {
  const listed: AddressFault[] = [];
  const unlisted = new Map<FindingType, number>();
  for (const fault of faults) {
    if (listed.length < MOST_FAULTS) listed.push(fault);
    else if (fault.type) unlisted.set(fault.type, (unlisted.get(fault.type) ?? 0) + 1);
  }
  return { listed, unlisted };
}

async function readService(kubernetes: ClusterPort, key: string | undefined): Promise<ServiceClaim | undefined> {
  const [namespace = '', name = ''] = key?.split('/') ?? [];
  if (namespace === '' || name === '') return undefined;
  const ref: ObjectRef = { kind: 'Service', namespace, name };
  const object = await kubernetes.get(ref);
  return object && SERVICE_READER.fromJson(object);
}

/**
 * Returns the Service with its addresses in canonical form. If a Service spells an address differently, upstream deletes the
 * IPAddress and creates it again immediately. This project would create it again only in the next pass, and until then another
 * Service could get the address.
 */
function inOneSpelling(service: ServiceClaim): ServiceClaim {
  return { ...service, clusterIPs: service.clusterIPs.map((text) => canonicalAddress(text) ?? text) };
}

function isSameFault(one: AddressFault, other: AddressFault): boolean {
  const key = ({ item, service, correction, type }: AddressFault) => [item, service, correction, type].join(' ');
  return key(one) === key(other);
}

/**
 * Returns the finding. Omits its event if the pass does not make the correction, because the text of the event contains
 * "repairing".
 */
function findingOf({ finding, correction }: AddressFault, writes: boolean): Finding[] {
  if (finding === undefined) return [];
  const whole = finding();
  const { event: _, ...withoutEvent } = whole;
  return [correction === 'none' || writes ? whole : withoutEvent];
}

/** Returns the change; `undefined` if the object has changed since it was read, or the write was withheld. */
async function correct(kubernetes: ClusterPort, { fault, record, service }: Confirmed): Promise<string | undefined> {
  const { item, correction } = fault;
  const owner = service === undefined ? '' : ` for Service ${serviceKey(service)}`;
  switch (correction) {
    case 'none':
      return undefined;
    case 'create':
      return (await create(kubernetes, item, service)) ? `created IPAddress ${item}${owner}` : undefined;
    case 'replace': {
      const isFree = record === undefined || (await remove(kubernetes, record));
      return isFree && (await create(kubernetes, item, service)) ? `replaced IPAddress ${item}${owner}` : undefined;
    }
    case 'relabel':
      return record && (await relabel(kubernetes, record)) ? `corrected the labels of IPAddress ${item}` : undefined;
    case 'delete':
      return record && (await remove(kubernetes, record)) ? `deleted IPAddress ${item}` : undefined;
  }
}

/** Returns false if another writer, such as an API server, created the IPAddress first: the next pass checks it. */
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
  if ('message' in result) throw new ClusterError('Rejected', `IPAddress ${item} was not created: ${result.message}`);
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

/** Ends expired holds: deletes the IPAddress of each hold if it has not changed since it was read. */
async function endHolds(report: PassReport, { kubernetes, nowMs }: PassContext): Promise<PassReport> {
  const changes = [...report.changes];
  try {
    for (const object of await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR)) {
      const hold = holdIn(object);
      if (hold === undefined || !isSurelyOver(hold, nowMs())) continue;
      if ((await kubernetes.delete(object)) !== 'deleted') continue;
      changes.push(`released ${object.metadata.name}, whose hold of ${hold.owner} expired`);
    }
    return { ...report, changes };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const message = `Expired holds were not released: ${error.message}`;
    const failure = new ClusterError(error.code, message, { cause: error });
    return { ...report, changes, errors: [...report.errors, failure] };
  }
}
