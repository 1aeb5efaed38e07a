import { canonicalAddress } from '../allocator/ip-address.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { IPAddressRecord, KubernetesObject, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import {
  ClusterError,
  type ClusterPort,
  isFaultOfKind,
  isFaultOfObject,
  type ObjectRef,
} from '../kubernetes/cluster-port.ts';
import { IP_ADDRESS_READER } from '../kubernetes/ip-address-reader.ts';
import { listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { SERVICE_READER } from '../kubernetes/service-reader.ts';
import { isSurelyOver } from '../range/hold.ts';
import { HOLDS_SELECTOR, holdIn, MANAGED_BY_HOLDS } from '../range/hold-ip-address.ts';
import { type AddressMemory, addressMemoryIn, type Clocks, chooseFaults, isOld } from '../repair/address-turns.ts';
import { type AddressFault, type AddressView, addressFaults, serviceKey } from '../repair/ip-addresses.ts';
import { fullFamilies, serviceCidrUsage } from '../repair/service-cidr-usage.ts';
import { plainValue } from '../table/stored-item.ts';
import { eachOf } from '../util/async.ts';
import { type Confirmed, correct } from './ip-address-corrections.ts';
import type { PassContext, PassReport } from './pass.ts';

/** The maximum number of findings that a pass lists if it could not read IPAddresses, or end holds. */
const MOST_UNREAD = 200;
/** The maximum number of Services that a pass reads because only IPAddresses name them. */
const MOST_PARENTS = 200;
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
    const mayEnd = await mayEndHolds(kubernetes);
    const recorded = mayEnd === undefined ? repaired : withState(repaired, { mayEndHolds: mayEnd });
    const isAnyHeld = [...addresses.values()].some(({ managedBy }) => managedBy === MANAGED_BY_HOLDS);
    return isAnyHeld ? await endHolds(recorded, context, mayEnd ?? true) : recorded;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    if (error.code !== 'Forbidden') return withoutAddresses(report, context, cidrs, services, error);
    const message = `IPAddresses are not checked: ${error.message}. Apply deploy/rbac.yaml.`;
    const counted = withUsage(report, cidrs, services, []);
    return { ...counted, findings: [...counted.findings, { type: 'other', message, item: 'ipaddresses' }] };
  }
}

/** Returns whether the pass may delete IPAddresses; `undefined` if the API server does not tell. */
async function mayEndHolds(kubernetes: ClusterPort): Promise<boolean | undefined> {
  try {
    return await kubernetes.allows('delete', 'IPAddress');
  } catch (error) {
    if (error instanceof ClusterError) return undefined;
    throw error;
  }
}

/**
 * Returns the report of a pass that could not read the IPAddresses. Its findings are those that need no IPAddress, worded as in
 * other passes, and its state is that of the previous pass.
 */
function withoutAddresses(
  report: PassReport,
  { previous }: PassContext,
  cidrs: readonly ServiceCidr[],
  services: Services,
  error: ClusterError,
): PassReport {
  const view = { services, addresses: new Map(), isServed: servedAddresses(cidrs) };
  const certain = [...addressFaults(view)].filter(({ correction }) => correction === 'none').slice(0, MOST_UNREAD);
  return {
    ...report,
    findings: [
      ...report.findings.filter(({ type }) => !CLAIM_FINDINGS.has(type)),
      ...certain.flatMap((fault) => findingOf(fault, true)),
    ],
    errors: [...report.errors, error],
    ...(previous?.state !== undefined && { state: previous.state }),
  };
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
    if (unlisted.size === MOST_PARENTS) break;
    if (!services.has(serviceKey(parent))) unlisted.add(serviceKey(parent));
  }
  const read = await eachOf([...unlisted], READS_AT_ONCE, (key) =>
    readService(kubernetes, key).catch((error: unknown) => {
      // The fault of its IPAddress is read again, and then reports why this Service cannot be read.
      if (!isFaultOfObject(error)) throw error;
      return undefined;
    }),
  );
  for (const service of read) if (service !== undefined) keepService(services, service);
}

async function withFaults(
  report: PassReport,
  { kubernetes, nowMs, spec, previous }: PassContext,
  cidrs: readonly ServiceCidr[],
  read: Pick<AddressView, 'services' | 'addresses'>,
): Promise<PassReport> {
  const isInitial = servedAddresses(cidrs);
  const clocks = { nowMs: nowMs(), servedAtMs: kubernetes.servedAtMs() };
  const faults = [...addressFaults({ ...read, isServed: isInitial })];
  // The deletion alone of an IPAddress that a Service needs would free the address of the Service.
  const replaced = new Set(faults.flatMap(({ correction, item }) => (correction === 'replace' ? item : [])));
  const { listed, unlisted, memory } = chooseFaults(faults, addressMemoryIn(previous?.state), clocks);
  // Services may have addresses of ServiceCIDRs that were created during the pass.
  const isNew = listed.some(({ type }) => type === 'outOfRange')
    ? servedAddresses(await listServiceCidrs(kubernetes))
    : () => false;
  const isServed = (address: string) => isInitial(address) || isNew(address);
  const confirmed = await eachOf(listed, READS_AT_ONCE, (fault) =>
    readAgain(kubernetes, fault, { ...read, isServed }, clocks),
  );
  const { ipAddresses } = spec.repair;
  const { changes, findings, errors } = await correctEach(
    kubernetes,
    confirmed.filter((fault) => fault !== undefined),
    ipAddresses,
    replaced,
  );
  const isKept = (type: FindingType) => !CLAIM_FINDINGS.has(type);
  return {
    ...withState(report, hasContent(memory) ? { addresses: memory } : {}),
    changes: [...report.changes, ...changes],
    errors: [...report.errors, ...errors],
    findings: [...report.findings.filter(({ type }) => isKept(type)), ...findings],
    unlisted: new Map([...[...(report.unlisted ?? [])].filter(([type]) => isKept(type)), ...unlisted]),
    counts: { ...report.counts, ipAddresses: read.addresses.size },
  };
}

function hasContent({ seen, turn }: AddressMemory): boolean {
  return Object.keys(seen).length > 0 || turn !== undefined;
}

function withState(report: PassReport, added: { addresses?: AddressMemory; mayEndHolds?: boolean }): PassReport {
  return { ...report, state: plainValue({ ...Object(report.state), ...added }) };
}

/**
 * Corrects faults one by one. If an object cannot be corrected, that is a finding, and the pass continues. If the role does not
 * allow a kind of correction, it is one finding.
 * @param replaced the addresses whose IPAddress is only replaced, but not deleted
 */
async function correctEach(
  kubernetes: ClusterPort,
  confirmed: readonly (Confirmed | Finding)[],
  writes: boolean,
  replaced: ReadonlySet<string>,
): Promise<Pick<PassReport, 'changes' | 'findings' | 'errors'>> {
  const unread = confirmed.flatMap((one) => ('fault' in one ? [] : [one]));
  // A Service that cannot be read again may have the address, so its IPAddress stays.
  const isUnread = ({ item }: AddressFault) => unread.some((finding) => finding.item === item);
  const faults = confirmed.filter((one) => 'fault' in one).filter(({ fault }) => !isUnread(fault));
  const findings = [...unread, ...faults.flatMap(({ fault }) => findingOf(fault, writes))];
  const changes: string[] = [];
  const refused = new Set<AddressFault['correction']>();
  try {
    const isLeft = ({ correction, item }: AddressFault) => correction === 'delete' && replaced.has(item);
    for (const one of writes ? faults.filter(({ fault }) => !isLeft(fault)) : []) {
      const { fault } = one;
      if (refused.has(fault.correction)) continue;
      const done = await correct(kubernetes, one).catch((error: unknown) => {
        if (!isFaultOfObject(error)) throw error;
        if (!isFaultOfKind(error)) return notCorrected(fault, error);
        refused.add(fault.correction);
        const message = `IPAddresses are not corrected (${fault.correction}): ${error.message}`;
        return { type: 'notCorrected', message, item: 'ipaddresses' } satisfies Finding;
      });
      if (typeof done === 'string') changes.push(done);
      else if (done !== undefined) findings.push(done);
    }
    return { changes, findings, errors: [] };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { changes, findings, errors: [error] };
  }
}

function notCorrected({ item, service, correction }: AddressFault, error: ClusterError): Finding {
  const message = `IPAddress ${item} is not corrected (${correction}): ${error.message}`;
  return { type: 'notCorrected', message, item, ...(service !== undefined && { service }) };
}

/**
 * Returns the fault with the current objects; `undefined` if it no longer exists. If one of the objects cannot be read, returns
 * a finding instead: what is not known is not corrected.
 */
async function readAgain(
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
    // Protobuf lists wrap times after the year 2106, and JSON does not.
    if (fault?.record !== undefined && !isOld(fault.record, clocks)) return undefined;
    const service = services.get(listed.service ?? '');
    return fault && { fault, ...(record && { record }), ...(service && { service }) };
  } catch (error) {
    if (!isFaultOfObject(error)) throw error;
    return notCorrected(listed, error);
  }
}

/** Lists the IPAddresses. Returns `undefined` if the API server does not have this resource (before Kubernetes 1.33). */
async function readAddresses(kubernetes: ClusterPort): Promise<Map<string, IPAddressRecord> | undefined> {
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

/** @param known the listed Services: one that cannot be read by itself still has its addresses */
async function readServices(
  kubernetes: ClusterPort,
  keys: ReadonlySet<string | undefined>,
  known: AddressView['services'],
): Promise<Services> {
  const services: Services = new Map();
  for (const key of keys) {
    const listed = known.get(key ?? '');
    const service = await readService(kubernetes, key).catch((error: unknown) => {
      if (listed === undefined || !isFaultOfObject(error)) throw error;
      return listed;
    });
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
 * Returns the Service with its addresses in canonical form. If a Service spells an address differently, upstream deletes the
 * IPAddress and creates it again immediately. This project would create it again only in the next pass, and until then another
 * Service could get the address.
 */
function inOneSpelling(service: ServiceClaim): ServiceClaim {
  return { ...service, clusterIPs: service.clusterIPs.map((text) => canonicalAddress(text) ?? text) };
}

function isSameFault(one: AddressFault, other: AddressFault): boolean {
  const key = ({ item, service, correction, type, record }: AddressFault) =>
    [item, service, correction, type, record?.uid].join(' ');
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

/**
 * Ends expired holds: deletes the IPAddress of each hold if it has not changed since it was read. A hold that cannot be ended is a
 * finding.
 */
async function endHolds(report: PassReport, { kubernetes, nowMs }: PassContext, mayEnd: boolean): Promise<PassReport> {
  const changes = [...report.changes];
  const findings = [...report.findings];
  try {
    for (const object of await kubernetes.list('IPAddress', undefined, HOLDS_SELECTOR)) {
      const hold = holdIn(object);
      if (hold === undefined || !isSurelyOver(hold, nowMs())) continue;
      const { name: item } = object.metadata;
      const outcome = mayEnd ? await deleteHeld(kubernetes, object) : MAY_NOT_END;
      if (outcome === 'deleted') changes.push(`released ${item}, whose hold of ${hold.owner} expired`);
      else if (outcome !== undefined && findings.length < MOST_UNREAD) {
        const message = `The hold of ${hold.owner} on ${item} expired and is not released: ${outcome}`;
        findings.push({ type: 'notCorrected', message, item });
      }
    }
    return { ...report, changes, findings };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const message = `Expired holds were not released: ${error.message}`;
    const failure = new ClusterError(error.code, message, { cause: error });
    return { ...report, changes, findings, errors: [...report.errors, failure] };
  }
}

const MAY_NOT_END =
  'passes may not delete IPAddresses. Allow them "delete" of "ipaddresses", or release it with "kbctl release ip".';

/** Returns `deleted`, or why the API server refused; `undefined` if the object has changed, or the write was withheld. */
async function deleteHeld(kubernetes: ClusterPort, object: KubernetesObject): Promise<string | undefined> {
  try {
    return (await kubernetes.delete(object)) === 'deleted' ? 'deleted' : undefined;
  } catch (error) {
    if (!isFaultOfObject(error)) throw error;
    return error.message;
  }
}
