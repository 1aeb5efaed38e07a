import { canonicalAddress, familyOf } from '../allocator/ip-address.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { IPAddressRecord, ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { serviceFinding } from './claims.ts';

/*
 * The repair of IPAddresses (`pkg/registry/core/service/ipallocator/controller/repairip.go`), which record the cluster
 * IPs of Services from Kubernetes 1.33 on. The repair decides from the listed objects.
 *
 * A fault whose correction deletes an IPAddress may come from a request that is still running. It counts only after a
 * minute (`isSettled` in address-turns.ts). Upstream waits for 60 s, 5 s or not at all, because upstream restores at
 * once an IPAddress that it wrongly deleted.
 */

interface FaultKind {
  readonly correction: 'none' | 'create' | 'replace' | 'relabel' | 'delete';
  /** The type of the finding; absent if there is no finding. */
  readonly type?: FindingType;
  /** Upstream's reason in the event. */
  readonly reason?: string;
}

/** The faults of the address of a Service. */
const CLAIM_FAULTS = {
  invalid: { correction: 'none', type: 'invalid', reason: 'ClusterIPNotValid' },
  /** No ServiceCIDR contains the address. */
  outOfRange: { correction: 'none', type: 'outOfRange', reason: 'ClusterIPOutOfRange' },
  /** The address has no IPAddress. */
  notRecorded: { correction: 'create', type: 'notRecorded', reason: 'ClusterIPNotAllocated' },
  /** Another Service has the address: the Service in the IPAddress or, without an IPAddress, an earlier Service in the list. */
  duplicate: { correction: 'none', type: 'duplicate', reason: 'ClusterIPAlreadyAllocated' },
  /** The IPAddress references no existing Service. */
  wrongReference: { correction: 'replace', type: 'notRecorded', reason: 'ClusterIPNotAllocated' },
  /** The IPAddress references another Service, which lacks the address. The finding is about the IPAddress (`strayReference`). */
  otherReference: { correction: 'replace' },
  /** The IPAddress has wrong labels. Upstream deletes and recreates it, without an event; in between, nothing reserves it. */
  wrongLabels: { correction: 'relabel' },
} as const satisfies Readonly<Record<string, FaultKind>>;

/** The faults of an IPAddress that the API servers manage, with upstream's reason in the event. */
const RECORD_FAULTS = {
  /** The IPAddress references no Service. */
  modified: 'IPAddressNotAllocated',
  /** The IPAddress references a missing Service. */
  leaked: 'IPAddressNotAllocated',
  /** The IPAddress references a Service that lacks the address. */
  strayReference: 'IPAddressWrongReference',
} as const;

/** The label value that API servers set on the IPAddresses that they allocate. */
export const MANAGED_BY_API_SERVERS = 'ipallocator.k8s.io';

export interface AddressView {
  /** The Services by their {@link serviceKey}. */
  readonly services: ReadonlyMap<string, ServiceClaim>;
  readonly addresses: ReadonlyMap<string, IPAddressRecord>;
  /** Returns whether a ServiceCIDR contains the address, which must be in canonical form. */
  readonly isServed: (address: string) => boolean;
}

export interface AddressFault extends Pick<FaultKind, 'type' | 'correction'> {
  /** The address in canonical form, or the text in the Service if that text is not an address. */
  readonly item: string;
  /** The Service that has the address. Absent if the IPAddress alone is at fault. */
  readonly service?: string;
  /** Another Service that has the address. */
  readonly other?: string;
  /** Returns the finding. Called only for listed faults, because the texts of all faults would take too long. */
  readonly finding?: () => Finding;
  /** The IPAddress that the correction deletes. */
  readonly record?: IPAddressRecord;
}

export function serviceKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** Returns first the faults of all Services, then the faults of all IPAddresses, each in the order of the list. */
export function* addressFaults(view: AddressView): Generator<AddressFault> {
  // A map from each address without an IPAddress to the first Service that claims it.
  const unrecorded = new Map<string, string>();
  for (const service of view.services.values()) {
    if (service.clusterIP === '' || service.clusterIP === 'None') continue;
    for (const text of service.clusterIPs) {
      const fault = claimFault(service, text, view, unrecorded);
      if (fault !== undefined) yield fault;
    }
  }
  for (const record of view.addresses.values()) {
    const kind = judgeRecord(record, view);
    if (kind === undefined) continue;
    const finding = () => recordFinding(kind, record);
    yield { item: record.name, type: 'leakedRecord', correction: 'delete', record, finding };
  }
}

function claimFault(
  service: ServiceClaim,
  text: string,
  view: AddressView,
  unrecorded: Map<string, string>,
): AddressFault | undefined {
  const address = canonicalAddress(text);
  const judged = judgeClaim(service, address, view, unrecorded);
  if (judged === undefined) return undefined;
  const { kind, ...rest } = judged;
  const item = address ?? text;
  const { correction } = CLAIM_FAULTS[kind];
  const fault = { item, service: serviceKey(service), correction, ...rest };
  if (kind === 'otherReference' || kind === 'wrongLabels') return fault;
  return { ...fault, type: CLAIM_FAULTS[kind].type, finding: () => claimFinding(kind, service, fault) };
}

interface JudgedClaim extends Pick<AddressFault, 'other' | 'record'> {
  readonly kind: keyof typeof CLAIM_FAULTS;
}

function judgeClaim(
  service: ServiceClaim,
  address: string | undefined,
  { isServed, addresses, services }: AddressView,
  unrecorded: Map<string, string>,
): JudgedClaim | undefined {
  if (address === undefined) return { kind: 'invalid' };
  if (!isServed(address)) return { kind: 'outOfRange' };
  const key = serviceKey(service);
  const record = addresses.get(address);
  if (record === undefined) {
    const first = unrecorded.get(address) ?? key;
    unrecorded.set(address, first);
    return first === key ? { kind: 'notRecorded' } : { kind: 'duplicate', other: first };
  }
  const parent = serviceKey(record.parent);
  const referenced = referencesService(record) ? services.get(parent) : undefined;
  if (referenced === undefined) return { kind: 'wrongReference', record };
  if (parent !== key) {
    return hasAddress(referenced, address) ? { kind: 'duplicate', other: parent } : { kind: 'otherReference', record };
  }
  return hasLabels(record) ? undefined : { kind: 'wrongLabels' };
}

function judgeRecord(record: IPAddressRecord, { services }: AddressView): keyof typeof RECORD_FAULTS | undefined {
  if (record.managedBy !== MANAGED_BY_API_SERVERS) return undefined;
  if (!referencesService(record)) return 'modified';
  const service = services.get(serviceKey(record.parent));
  if (service === undefined) return 'leaked';
  return service.clusterIPs.includes(record.name) ? undefined : 'strayReference';
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

type ReportedClaim = Exclude<keyof typeof CLAIM_FAULTS, 'otherReference' | 'wrongLabels'>;

function claimFinding(kind: ReportedClaim, service: ServiceClaim, { item, other }: AddressFault): Finding {
  const [note, message = note] = claimTexts(kind, serviceKey(service), item, other);
  const action = kind === 'invalid' ? 'ClusterIPValidation' : 'ClusterIPAllocation';
  const { type, reason } = CLAIM_FAULTS[kind];
  return serviceFinding(service, item, action, { type, reason, note, message });
}

/** Returns upstream's texts of the event and of the log; one text if they are equal. */
function claimTexts(kind: ReportedClaim, service: string, item: string, other?: string): [string, string?] {
  const shown = `[${familyOf(item)}]: ${item}`;
  switch (kind) {
    case 'invalid': {
      const why = 'is not a valid IP; please recreate Service';
      return [`Cluster IP ${item} ${why}`, `the ClusterIP ${item} for Service ${service} ${why}`];
    }
    case 'outOfRange':
      return [
        `Cluster IP ${shown} is not within any configured Service CIDR; please recreate service`,
        `the ClusterIP ${shown} for Service ${service} is not within any service CIDR; please recreate`,
      ];
    case 'notRecorded': {
      const why = 'is not allocated; repairing';
      return [`Cluster IP ${shown} ${why}`, `the ClusterIP ${shown} for Service ${service} ${why}`];
    }
    case 'duplicate': {
      const closed = `[${familyOf(item)}]:${item}`;
      return [
        `Cluster IP ${closed} was assigned to multiple services; please recreate service`,
        `the cluster IP ${closed} for service ${service} was assigned to other services ${other}; please recreate`,
      ];
    }
    case 'wrongReference':
      return [`the ClusterIP ${shown} for Service ${service} has a wrong reference; repairing`];
  }
}

function recordFinding(kind: keyof typeof RECORD_FAULTS, record: IPAddressRecord): Finding {
  const { name, uid, resourceVersion } = record;
  const [note, message = note] = recordTexts(kind, record);
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress' };
  const regarding = { ...object, namespace: '', name, uid, resourceVersion };
  const event = { regarding, reason: RECORD_FAULTS[kind], action: 'IPAddressAllocation', note };
  return { type: 'leakedRecord', message, item: name, event };
}

function recordTexts(kind: keyof typeof RECORD_FAULTS, { name: item, parent }: IPAddressRecord): [string, string?] {
  const { group, resource, namespace, name } = parent;
  switch (kind) {
    case 'modified': {
      const reference = `&ParentReference{Group:${group},Resource:${resource},Namespace:${namespace},Name:${name},}`;
      return [`IPAddress ${item} appears to have been modified, not referencing a Service ${reference}: cleaning up`];
    }
    case 'leaked': {
      const why = 'appears to have leaked: cleaning up';
      return [`IPAddress: ${item} for Service ${namespace}/${name} ${why}`, `IPAddress ${item} ${why}`];
    }
    case 'strayReference': {
      const why = `IPAddress: ${item} for Service ${namespace}/${name} has a wrong reference`;
      const reference = `&v1.ParentReference{Group:"", Resource:"services", Namespace:"${namespace}", Name:"${name}"}`;
      return [`${why}; cleaning up`, `the ${why} ${reference}; cleaning up`];
    }
  }
}
