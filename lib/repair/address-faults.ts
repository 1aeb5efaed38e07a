import { canonicalAddress, familyOf } from '../allocator/ip-address.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { IPAddressRecord, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { serviceFinding } from './claim-findings.ts';

/*
 * The repair of IPAddresses (`pkg/registry/core/service/ipallocator/controller/repairip.go`), which record the cluster
 * IPs of Services from Kubernetes 1.33 on. The repair decides from the listed objects. The findings have upstream's
 * names:
 *
 *   | the address of a Service                         | finding                     | correction |
 *   | ------------------------------------------------ | --------------------------- | ---------- |
 *   | does not parse                                   | ClusterIPNotValid           | none       |
 *   | is in no ServiceCIDR                             | ClusterIPOutOfRange         | none       |
 *   | has no IPAddress                                 | ClusterIPNotAllocated       | create     |
 *   | has no IPAddress; an earlier Service claims it   | ClusterIPAlreadyAllocated   | none       |
 *   | has an IPAddress that references no existing     | ClusterIPNotAllocated       | replace    |
 *   |   Service                                        |                             |            |
 *   | has an IPAddress that references another Service | ClusterIPAlreadyAllocated   | none       |
 *   |   with the address                               |                             |            |
 *   | has an IPAddress that references another Service | none                        | replace    |
 *   |   without the address                            |                             |            |
 *   | has an IPAddress with a wrong label              | none                        | relabel    |
 *
 *   | an IPAddress of the API servers references       | finding                     | correction |
 *   | ------------------------------------------------ | --------------------------- | ---------- |
 *   | no Service                                       | IPAddressNotAllocated       | delete     |
 *   | a missing Service                                | IPAddressNotAllocated       | delete     |
 *   | a Service without the address                    | IPAddressWrongReference     | delete     |
 *
 * A fault whose correction deletes an IPAddress may come from a request that is still running. It counts only after a
 * minute (`isSettled` in address-turns.ts). Upstream waits for 60 s, 5 s or not at all, because upstream restores at
 * once an IPAddress that it wrongly deleted.
 */

/** The label value that API servers set on the IPAddresses that they allocate. */
export const MANAGED_BY_API_SERVERS = 'ipallocator.k8s.io';

export interface AddressView {
  /** The Services by their {@link serviceKey}. */
  readonly services: ReadonlyMap<string, ServiceClaim>;
  readonly addresses: ReadonlyMap<string, IPAddressRecord>;
  /** Returns whether a ServiceCIDR contains the address, which must be in canonical form. */
  readonly isServed: (address: string) => boolean;
}

export interface AddressFault {
  /** The canonical text of the address, or the Service's own text if that is not an address. */
  readonly item: string;
  /** The Service that has the address. Absent if the IPAddress alone is at fault. */
  readonly service?: string;
  /** Another Service that has the address. */
  readonly other?: string;
  /**
   * The type of the finding. Absent for wrong labels, because upstream corrects them without an event. Also absent if
   * the finding is about the IPAddress instead.
   */
  readonly type?: FindingType;
  /** Returns the finding. Called only for listed faults, because the texts of all faults would take too long. */
  readonly finding?: () => Finding;
  /**
   * The correction. `relabel` patches the labels. Upstream instead deletes the object and creates it again; in between,
   * no IPAddress reserves the address.
   */
  readonly correction: 'none' | 'create' | 'replace' | 'relabel' | 'delete';
  /** The IPAddress that the correction deletes. */
  readonly record?: IPAddressRecord;
}

export function serviceKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** Returns first the faults of all Services, then the faults of all IPAddresses, each in the order of the list. */
export function* addressFaults(view: AddressView): Generator<AddressFault> {
  const unrecorded = new Map<string, string>();
  for (const service of view.services.values()) yield* serviceFaults(service, view, unrecorded);
  for (const record of view.addresses.values()) {
    const fault = judgeRecord(record, view);
    if (fault !== undefined) yield fault;
  }
}

/** @param unrecorded a map from each address without an IPAddress to the first Service that claims it */
function* serviceFaults(
  service: ServiceClaim,
  view: AddressView,
  unrecorded: Map<string, string>,
): Generator<AddressFault> {
  if (service.clusterIP === '' || service.clusterIP === 'None') return;
  for (const text of service.clusterIPs) {
    const item = canonicalAddress(text);
    const fault = item === undefined ? notValid(service, text) : claimFault(service, item, view, unrecorded);
    if (fault !== undefined) yield { ...fault, service: serviceKey(service) };
  }
}

function claimFault(
  service: ServiceClaim,
  item: string,
  view: AddressView,
  unrecorded: Map<string, string>,
): AddressFault | undefined {
  if (!view.isServed(item)) return outOfRange(service, item);
  const key = serviceKey(service);
  const record = view.addresses.get(item);
  if (record === undefined) {
    const first = unrecorded.get(item) ?? key;
    unrecorded.set(item, first);
    return first === key ? notRecorded(service, item) : assignedTwice(service, item, first);
  }
  const parent = serviceKey(record.parent);
  const referenced = referencesService(record) ? view.services.get(parent) : undefined;
  if (referenced === undefined) return { ...wrongReference(service, item), record };
  if (parent !== key) {
    return hasAddress(referenced, item)
      ? assignedTwice(service, item, parent)
      : { item, correction: 'replace', record };
  }
  return hasLabels(record) ? undefined : { item, correction: 'relabel' };
}

function judgeRecord(record: IPAddressRecord, { services }: AddressView): AddressFault | undefined {
  if (record.managedBy !== MANAGED_BY_API_SERVERS) return undefined;
  if (!referencesService(record)) return modified(record);
  const service = services.get(serviceKey(record.parent));
  if (service === undefined) return leaked(record);
  return service.clusterIPs.includes(record.name) ? undefined : strayReference(record);
}

/** Returns whether a Service has an address, in any spelling. `address` must be in canonical form. */
function hasAddress({ clusterIPs }: ServiceClaim, address: string): boolean {
  return clusterIPs.some((text) => text === address || canonicalAddress(text) === address);
}

function referencesService({ parent: { group, resource } }: IPAddressRecord): boolean {
  return group === '' && resource === 'services';
}

function hasLabels({ name, family, managedBy }: IPAddressRecord): boolean {
  return family === familyOf(name) && managedBy === MANAGED_BY_API_SERVERS;
}

function notValid(service: ServiceClaim, text: string): AddressFault {
  const why = 'is not a valid IP; please recreate Service';
  return serviceFault(service, text, 'invalid', 'none', () => ({
    action: 'ClusterIPValidation',
    reason: 'ClusterIPNotValid',
    note: `Cluster IP ${text} ${why}`,
    message: `the ClusterIP ${text} for Service ${serviceKey(service)} ${why}`,
  }));
}

function outOfRange(service: ServiceClaim, item: string): AddressFault {
  const shown = `[${familyOf(item)}]: ${item}`;
  return serviceFault(service, item, 'outOfRange', 'none', () => ({
    reason: 'ClusterIPOutOfRange',
    note: `Cluster IP ${shown} is not within any configured Service CIDR; please recreate service`,
    message: `the ClusterIP ${shown} for Service ${serviceKey(service)} is not within any service CIDR; please recreate`,
  }));
}

function notRecorded(service: ServiceClaim, item: string): AddressFault {
  const shown = `[${familyOf(item)}]: ${item}`;
  return serviceFault(service, item, 'notRecorded', 'create', () => ({
    reason: 'ClusterIPNotAllocated',
    note: `Cluster IP ${shown} is not allocated; repairing`,
    message: `the ClusterIP ${shown} for Service ${serviceKey(service)} is not allocated; repairing`,
  }));
}

function wrongReference(service: ServiceClaim, item: string): AddressFault {
  return serviceFault(service, item, 'notRecorded', 'replace', () => {
    const note = `the ClusterIP [${familyOf(item)}]: ${item} for Service ${serviceKey(service)} has a wrong reference; repairing`;
    return { reason: 'ClusterIPNotAllocated', note, message: note };
  });
}

function assignedTwice(service: ServiceClaim, item: string, other: string): AddressFault {
  const shown = `[${familyOf(item)}]:${item}`;
  const fault = serviceFault(service, item, 'duplicate', 'none', () => ({
    reason: 'ClusterIPAlreadyAllocated',
    note: `Cluster IP ${shown} was assigned to multiple services; please recreate service`,
    message: `the cluster IP ${shown} for service ${serviceKey(service)} was assigned to other services ${other}; please recreate`,
  }));
  return { ...fault, other };
}

interface Wording {
  readonly action?: string;
  readonly reason: string;
  readonly note: string;
  readonly message: string;
}

/** @param wording a function that is called only if the finding is listed */
function serviceFault(
  service: ServiceClaim,
  item: string,
  type: FindingType,
  correction: AddressFault['correction'],
  wording: () => Wording,
): AddressFault {
  const finding = () => {
    const { action = 'ClusterIPAllocation', ...words } = wording();
    return serviceFinding(service, item, action, { type, ...words });
  };
  return { item, type, finding, correction };
}

function modified(record: IPAddressRecord): AddressFault {
  return recordFault(record, () => {
    const { group, resource, namespace, name } = record.parent;
    const parent = `&ParentReference{Group:${group},Resource:${resource},Namespace:${namespace},Name:${name},}`;
    const note = `IPAddress ${record.name} appears to have been modified, not referencing a Service ${parent}: cleaning up`;
    return { reason: 'IPAddressNotAllocated', note, message: note };
  });
}

function leaked(record: IPAddressRecord): AddressFault {
  return recordFault(record, () => {
    const why = 'appears to have leaked: cleaning up';
    const note = `IPAddress: ${record.name} for Service ${serviceKey(record.parent)} ${why}`;
    return { reason: 'IPAddressNotAllocated', note, message: `IPAddress ${record.name} ${why}` };
  });
}

function strayReference(record: IPAddressRecord): AddressFault {
  return recordFault(record, () => {
    const { namespace, name } = record.parent;
    const parent = `&v1.ParentReference{Group:"", Resource:"services", Namespace:"${namespace}", Name:"${name}"}`;
    return {
      reason: 'IPAddressWrongReference',
      note: `IPAddress: ${record.name} for Service ${namespace}/${name} has a wrong reference; cleaning up`,
      message: `the IPAddress: ${record.name} for Service ${namespace}/${name} has a wrong reference ${parent}; cleaning up`,
    };
  });
}

function recordFault(record: IPAddressRecord, wording: () => Wording): AddressFault {
  const { name, uid, resourceVersion } = record;
  const finding = (): Finding => {
    const { reason, note, message } = wording();
    const kind = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress' };
    const regarding = { ...kind, namespace: '', name, uid, resourceVersion };
    const event = { regarding, reason, action: 'IPAddressAllocation', note };
    return { type: 'leakedRecord', message, item: name, event };
  };
  return { item: name, type: 'leakedRecord', finding, correction: 'delete', record };
}
