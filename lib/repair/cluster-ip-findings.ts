import type { AllocatorError } from '../allocator/errors.ts';
import type { IPFamily } from '../allocator/ip-address.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { RepairError } from './errors.ts';
import { type Abort, aboutService, nameOf } from './service-finding.ts';

/*
 * The words of `pkg/registry/core/service/ipallocator/controller/repair.go`, but for an address that does not parse:
 * there it prints `<nil>`, here the text itself.
 */

const ALLOCATION = 'ClusterIPAllocation';
const VALIDATION = 'ClusterIPValidation';

/** A canonical address, its family, and the canonical text of its family's range. */
export interface ClaimedAddress {
  readonly address: string;
  readonly family: IPFamily;
  readonly range: string;
}

export function invalidAddress(service: ServiceClaim, text: string): Finding {
  return aboutService(service, text, {
    type: 'invalid',
    reason: 'ClusterIPNotValid',
    action: VALIDATION,
    note: `Cluster IP ${text} is not a valid IP; please recreate service`,
    message: `the cluster IP ${text} for service ${nameOf(service)} is not a valid IP; please recreate`,
  });
}

export function foreignFamily(service: ServiceClaim, address: string, family: IPFamily): Finding {
  const why = 'is of ip family that is no longer configured on cluster; please recreate';
  return aboutService(service, address, {
    type: 'invalid',
    reason: 'ClusterIPNotValid',
    action: VALIDATION,
    note: `Cluster IP ${address}(${family}) ${why} service`,
    message: `the cluster IP ${address}(${family}) for service ${nameOf(service)} ${why}`,
  });
}

export function addressNotAllocated(service: ServiceClaim, { address, family }: ClaimedAddress): Finding {
  return aboutService(service, address, {
    type: 'repair',
    reason: 'ClusterIPNotAllocated',
    action: ALLOCATION,
    note: `Cluster IP [${family}]:${address} is not allocated; repairing`,
    message: `the cluster IP [${family}]:${address} for service ${nameOf(service)} is not allocated; repairing`,
  });
}

export function duplicateAddress(service: ServiceClaim, { address, family }: ClaimedAddress): Finding {
  const why = 'was assigned to multiple services; please recreate';
  return aboutService(service, address, {
    type: 'duplicate',
    reason: 'ClusterIPAlreadyAllocated',
    action: ALLOCATION,
    note: `Cluster IP [${family}]:${address} ${why} service`,
    message: `the cluster IP [${family}]:${address} for service ${nameOf(service)} ${why}`,
  });
}

export function addressOutOfRange(service: ServiceClaim, { address, family, range }: ClaimedAddress): Finding {
  const why = `is not within the service CIDR ${range}; please recreate`;
  return aboutService(service, address, {
    type: 'outOfRange',
    reason: 'ClusterIPOutOfRange',
    action: ALLOCATION,
    note: `Cluster IP [${family}]:${address} ${why} service`,
    message: `the cluster IP [${family}]:${address} for service ${nameOf(service)} ${why}`,
  });
}

export function serviceCidrFull(service: ServiceClaim, claimed: ClaimedAddress, cause: AllocatorError): Abort {
  const { address, family, range } = claimed;
  const why = `is full; you must widen the CIDR in order to create new services for Cluster IP [${family}]:${address}`;
  const error = new RepairError('Full', `the service CIDR ${range} ${why}`, { cause });
  const finding = aboutService(service, address, {
    type: 'full',
    reason: 'ServiceCIDRFull',
    action: ALLOCATION,
    note: `Service CIDR ${range} ${why}`,
    message: error.message,
  });
  return { finding, error };
}

export function unknownAddressError(service: ServiceClaim, claimed: ClaimedAddress, cause: AllocatorError): Abort {
  const claim = `[${claimed.family}]:${claimed.address}`;
  const message = `unable to allocate cluster IP ${claim} for service ${nameOf(service)} due to an unknown error, exiting: ${cause.message}`;
  const finding = aboutService(service, claimed.address, {
    type: 'unknown',
    reason: 'UnknownError',
    action: ALLOCATION,
    note: `Unable to allocate cluster IP ${claim} due to an unknown error`,
    message,
  });
  return { finding, error: new RepairError('Unknown', message, { cause }) };
}
